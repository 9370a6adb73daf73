"""The control marks of the common families of models, as their tokenizers and chat templates write them.

Each comes from the `tokenizer_config.json`, `added_tokens` or chat template that its makers publish beside the
weights (https://huggingface.co, the organization named), or from the document named.
"""

from collections.abc import Mapping

# Marks recognised by their form; INNER is a run of characters without blanks, bars and brackets. Folded text is
# compared, in which DeepSeek's and Hunyuan's fullwidth bars are plain ones.
FORMS: Mapping[str, tuple[str, ...]] = {
    # ChatML (OpenAI; Qwen), Harmony (openai/gpt-oss), Llama 3 and 4 (meta-llama), Phi (microsoft), GLM (zai-org),
    # Zephyr (HuggingFaceH4), Command R (CohereLabs), Granite (ibm-granite), Kimi (moonshotai), DeepSeek (deepseek-ai)
    "bars in angle brackets": (r"<\|INNER\|>",),
    # Gemma 4 (google): <|turn> and <turn|>
    "one bar in angle brackets": (r"<\|INNER>", r"<INNER\|>"),
    # EXAONE (LGAI-EXAONE): [|user|], [|endofturn|]
    "bars in square brackets": (r"\[\|INNER\|\]",),
    # Gemma (google), T5 (google-t5), Baichuan 2 (baichuan-inc), Nemotron (nvidia), Apertus (swiss-ai), InternLM
    "numbered places": (
        r"(?i:<(?:unused|extra_id_|extra_|reserved_|special_|tokens_unused_|reserved_special_token_|mask:)[0-9]{1,6}>)",
    ),
    # BERT (google-bert): [unused1]
    "numbered places in square brackets": (r"\[unused[0-9]{1,6}\]",),
    # ChatGLM 1 and 2 (zai-org/chatglm2-6b): [Round 1], before 问：and 答：
    "numbers of turns": (r"(?i:\[round [0-9]{1,6}\])",),
    # Seed-OSS (ByteDance-Seed): <seed:bos>, <seed:think>
    "names with a colon": (r"(?i:</?seed:[a-z_]{1,40}>)",),
}

NAMED: Mapping[str, tuple[str, ...]] = {
    "sentencepiece (google/sentencepiece, its default control symbols), Llama 1 and 2 (meta-llama)": (
        "<s>", "</s>", "<unk>", "<pad>", "<mask>", "<cls>", "<sep>", "<bos>", "<eos>", "<eod>", "<eop>", "<sop>",
    ),
    "Llama 2 (meta-llama/Llama-2-7b-chat-hf; arXiv 2307.09288)": ("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"),
    "CodeLlama (meta-llama/CodeLlama-7b-hf)": ("<PRE>", "<SUF>", "<MID>", "<EOT>", "<step>"),
    "Mistral (mistral-common, tokens of its instruct tokenizers, v3 to v13)": (
        "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[/TOOL_CALLS]", "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]", "[TOOL_CONTENT]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[THINK]", "[/THINK]", "[ARGS]",
        "[CALL_ID]", "[IMG]", "[IMG_BREAK]", "[IMG_END]", "[AUDIO]", "[BEGIN_AUDIO]", "[TRANSCRIBE]", "[PREFIX]",
        "[MIDDLE]", "[SUFFIX]",
    ),
    "Gemma 1 to 3 (google/gemma-3-1b-it)": (
        "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>",
        "<start_of_audio>", "<end_of_audio>", "<start_function_call>", "<end_function_call>",
        "<start_function_response>", "<end_function_response>", "<start_function_declaration>",
        "<end_function_declaration>", "<escape>", "[multimodal]", "[@BOS@]",
    ),
    "reasoning and tools in angle brackets (Qwen 3; DeepSeek R1; GLM 4.5; NousResearch Hermes)": (
        "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<tools>",
        "</tools>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<scratch_pad>", "</scratch_pad>",
    ),
    "Command R and Aya (CohereLabs)": (
        "<BOS_TOKEN>", "<EOS_TOKEN>", "<EOP_TOKEN>", "<PAD_TOKEN>", "<MASK_TOKEN>",
    ),
    "BERT and GLM 2 (google-bert; zai-org/chatglm2-6b)": (
        "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[BOS]", "[EOS]", "[gMASK]", "[sMASK]",
    ),
    "Kimi-VL (moonshotai)": ("◁think▷", "◁/think▷"),
    "Ling (inclusionAI), RedPajama-INCITE-Chat (togethercomputer)": ("<role>", "</role>", "<human>", "<bot>"),
    "StarCoder (bigcode/starcoder2-7b)": (
        "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<repo_name>", "<file_sep>", "<issue_start>",
        "<issue_comment>", "<issue_closed>",
    ),
    "MiniMax (MiniMaxAI/MiniMax-M2)": (
        "]~b]", "]~!b[", "[e~[", "<beginning_of_sentence>", "<end_of_sentence>", "<minimax:tool_call>",
        "</minimax:tool_call>",
    ),
    "MOSS (fnlp/moss-moon-003-sft)": ("<eoc>", "<eom>", "<|Inner Thoughts|>"),
    "MiniCPM (openbmb), InternLM 1 (internlm), TeleChat (Tele-AI), Skywork, SmolVLM (HuggingFaceTB)": (
        "<用户>", "<AI>", "<eoh>", "<eoa>", "<_user>", "<_bot>", "<_system>", "<_end>", "<_start>", "[USER]", "[BOT]",
        "<end_of_utterance>", "<fake_token_around_image>", "<image>",
    ),
}  # fmt: skip

PATTERNS = tuple(pattern for patterns in FORMS.values() for pattern in patterns)
NAMED_MARKS = tuple(sorted({mark for marks in NAMED.values() for mark in marks}))
