"""What is set up wrongly."""

# ruff: noqa: N818 - the categories and many of the errors bear pagantic's and gollem's names

from __future__ import annotations

from flyball.core.errors.root import FailureCategory, FlyballError


class ConfigurationFailure(FlyballError):
    """Something is set up wrongly; trying again will not help."""

    code = "CONFIG_USAGE"
    category = FailureCategory.CONFIGURATION


class UserError(ConfigurationFailure):
    """flyball was used in a way that cannot work."""


class InvalidMessage(UserError):
    """A message has parts that its role cannot carry, or none."""

    code = "CONFIG_INVALID_MESSAGE"


class DepsError(UserError):
    """Dependencies are missing, or of the wrong type."""

    code = "CONFIG_DEPS"


class NoEngine(ConfigurationFailure):
    """No engine is configured."""

    code = "CONFIG_NO_ENGINE"


class UnknownModel(ConfigurationFailure):
    """A model string names no known provider, or cannot be read."""

    code = "CONFIG_UNKNOWN_MODEL"


class MissingExtra(ConfigurationFailure):
    """An optional part of flyball is not installed; the message has the command that installs it."""

    code = "CONFIG_MISSING_EXTRA"


class MissingLibrary(ConfigurationFailure):
    """A library of the operating system is not there; the message names the package that brings it."""

    code = "CONFIG_MISSING_LIBRARY"


class MissingKey(ConfigurationFailure):
    """A provider's key is not set; the message names the environment variable."""

    code = "CONFIG_MISSING_KEY"


class PermissionDenied(ConfigurationFailure):
    """A server refuses something to this user: details `subject`, `action`, `role`, `tenant`."""

    code = "CONFIG_PERMISSION_DENIED"


class UnknownTenant(ConfigurationFailure):
    """A tenant has no account here: details `tenant`."""

    code = "CONFIG_UNKNOWN_TENANT"


class ModelFileInvalid(ConfigurationFailure):
    """A file is no model: it is no GGUF file, it is cut short, or the engine cannot load it."""

    code = "CONFIG_MODEL_FILE_INVALID"


class ModelStorageFailed(ConfigurationFailure):
    """The folder for model files cannot be used: the disk is full, or writing there is not allowed."""

    code = "CONFIG_MODEL_STORAGE"


class SchemaRequired(ConfigurationFailure):
    """The mode needs a schema and the request has none."""

    code = "CONFIG_SCHEMA_REQUIRED"


class SchemaMalformed(ConfigurationFailure):
    """A schema is no JSON Schema, or a type has none."""

    code = "CONFIG_SCHEMA_MALFORMED"


class GrammarNotFound(ConfigurationFailure):
    """A grammar file is not there: details `path`."""

    code = "CONFIG_GRAMMAR_NOT_FOUND"


class GrammarMalformed(ConfigurationFailure):
    """A text is no GBNF grammar: details `line` and `column`."""

    code = "CONFIG_GRAMMAR_MALFORMED"


class GrammarWithoutRoot(GrammarMalformed):
    """A grammar has no rule `root`, where every grammar begins: details `rules` has those that it has."""

    code = "CONFIG_GRAMMAR_NO_ROOT"


class TemplateError(ConfigurationFailure):
    """A template cannot be filled with a value: details `template`, `line`, `column`, `variable`."""

    code = "CONFIG_TEMPLATE"


class TemplateMalformed(TemplateError):
    """A text is no template: details `template`, `line` and `column`."""

    code = "CONFIG_TEMPLATE_MALFORMED"


class TemplateVariableMissing(TemplateError):
    """A template's variable was not given: details `missing`, and `known`, those that were."""

    code = "CONFIG_TEMPLATE_VARIABLE_MISSING"


class InvalidRequest(ConfigurationFailure):
    """A request to the system lacks something or contradicts itself."""

    code = "CONFIG_INVALID_REQUEST"


class LoopMismatch(ConfigurationFailure):
    """The loop id is taken by a loop with another prompt or spec: details `loop_id`, `differs`."""

    code = "CONFIG_LOOP_MISMATCH"


class IdentityInvalid(ConfigurationFailure):
    """A text is no DID, or a document is no credential, DID document or identity: details `where`."""

    code = "CONFIG_IDENTITY_INVALID"


class IdentityNotFound(ConfigurationFailure):
    """Nobody here knows a DID, its key or a credential: details `did` or `credential`.

    Retryable where it was asked for over the network, and that failed.
    """

    code = "CONFIG_IDENTITY_NOT_FOUND"


class IdentityStorageFailed(ConfigurationFailure):
    """The folder of identities and keys cannot be read or written: details `path`."""

    code = "CONFIG_IDENTITY_STORAGE"


class ModelRequestsForbidden(ConfigurationFailure):
    """Real model calls are switched off here (tests), and one was tried."""

    code = "CONFIG_MODEL_REQUESTS_FORBIDDEN"
