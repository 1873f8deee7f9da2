// Numbers as people read them.

export function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value < 0.0005) return "0 ms";
  if (value < 0.9995) return `${Math.round(value * 1000)} ms`;
  if (value < 9.995) return `${value.toFixed(2)} s`;
  if (value < 59.95) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

export function ago(at, now = Date.now() / 1000) {
  const past = now - at;
  if (past < 10) return "now";
  if (past < 60) return `${Math.floor(past)} s ago`;
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86400) return `${Math.floor(past / 3600)} h ago`;
  const day = new Date(at * 1000);
  const year = day.getFullYear() === new Date(now * 1000).getFullYear() ? undefined : "numeric";
  return day.toLocaleDateString("en-GB", { day: "numeric", month: "short", year });
}

export function clock(at) {
  return new Date(at * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

export function count(value) {
  const number = Number(value) || 0;
  if (number < 10_000) return number.toLocaleString("en");
  if (number < 1_000_000) return `${(number / 1000).toFixed(number < 100_000 ? 1 : 0)}k`;
  return `${(number / 1_000_000).toFixed(1)}M`;
}

export function tokens(usage) {
  const [given, made] = [usage?.input_tokens ?? 0, usage?.output_tokens ?? 0];
  return given || made ? `${count(given)} → ${count(made)}` : "";
}

export function money(cost) {
  const total = cost?.total_cost;
  if (total === null || total === undefined) return "";
  const value = Number(total);
  const sign = cost.currency === "USD" ? "$" : `${cost.currency} `;
  return `${sign}${value === 0 || value >= 1 ? value.toFixed(2) : value.toPrecision(2)}`;
}

/** An id as it is shown: the beginning of one that flyball made, any other whole. */
export function short(id) {
  return /^[0-9a-f]{32}$/.test(id) ? id.slice(0, 12) : id;
}

export function several(number, what, plural = `${what}s`) {
  return `${Number(number).toLocaleString("en")} ${number === 1 ? what : plural}`;
}
