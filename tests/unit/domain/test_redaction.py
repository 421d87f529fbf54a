from __future__ import annotations

import time

import pytest

from provml_lightning.domain.redaction import redact, safe_value


@pytest.mark.parametrize(
    "text",
    [
        "x" * 200_000,
        "token_" * 30_000,
        "a://" * 50_000,
        "a://b:" * 30_000,
        "\\" * 200_000,
        "aB" * 100_000,
    ],
)
def test_a_long_text_takes_a_time_that_grows_with_its_length_alone(text: str) -> None:
    before = time.process_time()
    redact(text)
    assert time.process_time() - before < 5  # a quadratic search takes minutes


def test_a_password_in_a_url_is_masked() -> None:
    assert redact("git+https://me:secret@host/repo") == "git+https://***@host/repo"
    assert redact("1https://me:secret@host") == "1https://***@host"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{'password': 'pa55', 'lr': 1}", "{'password': ***, 'lr': 1}"),
        ('{"db": {"api_key": "pa55"}}', '{"db": {"api_key": ***}}'),
        (r'"{\"token\": \"pa55\", \"lr\": 1}"', r'"{\"token\": ***, \"lr\": 1}"'),
        ("Authorization: Bearer pa55", "Authorization: ***"),
        ("{'Authorization': 'Bearer pa55'}", "{'Authorization': ***}"),
        ("curl -H 'bearer 0123456789abcdef'", "curl -H '***'"),
        ("accessToken=pa55", "accessToken=***"),
        ("Server=x;Pwd=pa55", "Server=x;Pwd=***"),
        ("s3://me:pa/55@host/x.ckpt", "s3://***@host/x.ckpt"),
        ("https://host:443/a/b@v1", "https://host:443/a/b@v1"),
        ("https://a/x.ckpt?sv=1&sig=pa55&st=2", "https://a/x.ckpt?sv=1&sig=***&st=2"),
        ("https://a/x?X-Amz-Signature=pa55", "https://a/x?X-Amz-Signature=***"),
        ("AccountName=a;AccountKey=pa55==;B=c", "AccountName=a;AccountKey=***;B=c"),
        ("python train.py sig=0.5", "python train.py sig=0.5"),
        ("{'tokenizer': 'bpe', 'max_tokens': 5}", "{'tokenizer': 'bpe', 'max_tokens': 5}"),
    ],
)
def test_secrets_are_masked_in_the_forms_that_settings_are_written_in(
    text: str, shown: str
) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "name",
    [
        *("dbPassword", "accessToken", "private_key", "pwd", "Authorization", "a/b/apiKey"),
        *("password/prod", "credentials/value", "secrets/a", "api_keys", "db/passwords/0"),
    ],
)
def test_a_setting_whose_name_says_secret_is_masked_whole(name: str) -> None:
    assert safe_value(name, "pa55") == "***"


def test_of_numbers_only_passwords_are_masked() -> None:
    assert safe_value("db/password", 12345678) == "***"
    assert safe_value("pad_token_id", 50256) == 50256
    assert safe_value("password", True) is True


@pytest.mark.parametrize(
    "name", ["tokenizer", "forward", "secretary", "keys", "broken", "token/type"]
)
def test_a_setting_whose_name_only_looks_secret_is_kept(name: str) -> None:
    assert safe_value(name, "value") == "value"
