"""Secrets leave a text, look-alikes stay. All secrets here are made at run time from parts; none is real."""

from __future__ import annotations

import hashlib
import json
import random
import string
import time
import uuid
from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsvc.memory.redact import RULES, redact, redact_value, strip_private

LETTERS = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
DASHED = LETTERS + "-_"
rng = random.Random(7)  # noqa: S311 - a fixed seed is the point: the same "secrets" in every run


def of(alphabet: str, length: int) -> str:
    """Make random characters that hold a letter and a digit and end in neither `-` nor `_`."""
    return "".join(rng.choice(alphabet) for _ in range(length - 2)) + "a7" if "a" in alphabet else upper(length)


def upper(length: int) -> str:
    return "".join(rng.choice(UPPER) for _ in range(length - 2)) + "A7"


def mixed(length: int) -> str:
    return "aZ" + of(LETTERS, length - 2)


def pem(kind: str, lines: int = 6) -> str:
    body = "\n".join(of(LETTERS + "+/", 64) for _ in range(lines))
    return f"-----BEGIN {kind}-----\n{body}\n{of(LETTERS, 23)}=\n-----END {kind}-----"


# Rule → texts with the place of the secret, and the secret.
PLANTED: dict[str, list[tuple[str, str]]] = {
    "private-key": [("{}", pem("RSA " + "PRIVATE KEY")), ("{}", pem("OPENSSH " + "PRIVATE KEY"))],
    "age-key": [("{}", "AGE-SECRET" + "-KEY-1" + upper(58))],
    "jwt": [("{}", "ey" + "J" + of(LETTERS, 33) + ".ey" + "J" + of(DASHED, 60) + "." + of(DASHED, 43))],
    "aws-access-key-id": [("{}", "AK" + "IA" + upper(16)), ("{}", "AS" + "IA" + upper(16))],
    "aws-secret-key": [("aws_secret_access_key = {}", mixed(20) + "/" + of(LETTERS + "+/", 19))],
    "github-token": [
        *(("{}", f"gh{kind}" + "_" + of(LETTERS, 36)) for kind in "pousr"),
        ("{}", "github" + "_pat_" + of(LETTERS, 22) + "_" + of(LETTERS, 59)),
    ],
    "gitlab-token": [("{}", "gl" + "pat-" + of(DASHED, 20))],
    "slack-token": [("{}", "xo" + "xb-" + "2" * 12 + "-" + "3" * 12 + "-" + of(LETTERS, 24))],
    "slack-webhook": [("https://hooks.slack" + ".com/services/{}", f"T{upper(8)}/B{upper(8)}/{of(LETTERS, 24)}")],
    "discord-webhook": [("https://discord" + ".com/api/webhooks/123456789012345678/{}", of(DASHED, 68))],
    "stripe-key": [("{}", "sk" + "_live_" + of(LETTERS, 24)), ("{}", "wh" + "sec_" + of(LETTERS, 32))],
    "anthropic-key": [("{}", "sk" + "-ant-api03-" + of(DASHED, 93))],
    "deepseek-key": [("{}", "sk" + "-" + of(HEX, 32))],
    "openai-key": [("{}", "sk" + "-proj-" + of(DASHED, 120)), ("{}", "sk" + "-" + of(LETTERS, 48))],
    "google-api-key": [("{}", "AI" + "za" + of(DASHED, 35))],
    "google-oauth": [("{}", "ya" + "29." + of(DASHED, 80)), ("{}", "GOC" + "SPX-" + of(DASHED, 28))],
    "npm-token": [("{}", "np" + "m_" + of(LETTERS, 36))],
    "pypi-token": [("{}", "py" + "pi-AgE" + of(DASHED, 150))],
    "huggingface-token": [("{}", "h" + "f_" + of(LETTERS, 34))],
    "sendgrid-key": [("{}", "S" + "G." + of(DASHED, 22) + "." + of(DASHED, 43))],
    "twilio-key": [("the Twilio key {}", "S" + "K" + of(HEX, 32))],
    "telegram-bot": [("https://api.telegram.org/bot123456789:{}", "AA" + of(DASHED, 33))],
    "discord-bot": [("{}", "MT" + of(LETTERS, 22) + "." + of(LETTERS, 6) + "." + of(DASHED, 38))],
    "azure-storage-key": [("AccountName=a;Account" + "Key={};End=1", of(LETTERS + "+/", 86) + "==")],
    "digitalocean-token": [("{}", "do" + "p_v1_" + of(HEX, 64))],
    "linear-key": [("{}", "lin" + "_api_" + of(LETTERS, 40))],
    "notion-token": [("{}", "nt" + "n_" + of(LETTERS, 46)), ("{}", "sec" + "ret_" + of(LETTERS, 43))],
    "databricks-token": [("{}", "da" + "pi" + of(HEX, 32))],
    "vault-token": [("{}", "hv" + "s." + of(DASHED, 90))],
    "docker-token": [("{}", "dckr" + "_pat_" + of(DASHED, 27))],
    "shopify-token": [("{}", "shp" + "at_" + of(HEX, 32))],
    "grafana-token": [("{}", "gl" + "sa_" + of(LETTERS, 32) + "_" + of(HEX, 8))],
    "groq-key": [("{}", "gs" + "k_" + of(LETTERS, 52))],
    "xai-key": [("{}", "xa" + "i-" + of(LETTERS, 80))],
    "perplexity-key": [("{}", "pp" + "lx-" + of(LETTERS, 48))],
    "replicate-token": [("{}", "r" + "8_" + of(LETTERS, 37))],
    "supabase-token": [("{}", "sb" + "p_" + of(HEX, 40))],
    "rubygems-key": [("{}", "ruby" + "gems_" + of(HEX, 48))],
    "tailscale-key": [("{}", "ts" + "key-auth-" + of(LETTERS, 12) + "-" + of(LETTERS, 32))],
    "figma-token": [("{}", "fi" + "gd_" + of(DASHED, 40))],
    "postman-key": [("{}", "PM" + "AK-" + of(HEX, 24) + "-" + of(HEX, 34))],
    "atlassian-token": [("{}", "ATA" + "TT3" + of(DASHED, 180))],
    "sentry-token": [("{}", "snt" + "rys_" + of(LETTERS, 120))],
    "aliyun-key": [("{}", "LT" + "AI" + of(LETTERS, 20))],
    "authorization": [
        ("Authorization: Bearer {}", of(LETTERS, 40)),
        ("Authorization: Basic {}", b64encode(f"bob:{of(LETTERS, 12)}".encode()).decode()),
    ],
    "bearer": [("sent Bearer {}", of(LETTERS, 40))],
    "url-password": [
        ("https://bob:{}@host.example/x", "s3" + "cr3t"),
        ("postgres://app:{}@db:5432/app", of(LETTERS, 12)),
        ("mongodb+srv://app:{}@cluster0.mongodb.net", of(LETTERS, 12)),
        ("redis://:{}@cache:6379/0", of(LETTERS, 12)),
        ("postgres://app:{}@db", "p@ss" + "w0rd!"),
    ],
    "ssh-password": [("sshpass -p {} ssh bob@host", "hunt" + "er2")],
    "command-password": [
        ("curl -u bob:{} https://host.example", of(LETTERS, 10)),
        ("mysql -u root -p{} app", of(LETTERS, 10)),
        ("login --password {}", of(LETTERS, 10)),
    ],
    "session-cookie": [("Cookie: theme=dark; sessionid={}; lang=zh", of(LOWER, 32))],
    "password": [
        ("DB_PASSWORD={}", "Sup3r" + "Secret99"),
        ("password: {}", "Sup3r" + "Secret99"),
        ("passwd: {} # rotated", of(LETTERS, 10)),
        ("dbPass = {}", of(LETTERS, 10)),
        ("密码：{}", "Tr0ub4" + "dor&3"),
        ("密码是 {}", "Tr0ub4" + "dor&3"),
        ("数据库口令为{}，请保密", of(LETTERS, 10)),
        ("the password is {}", "hunt" + "er2!"),
        ("Server=db;User=sa;Password={};Encrypt=1", of(LETTERS, 12)),
        ("name: DB_PASSWORD\n  value: {}", of(LETTERS, 12)),
        ("<password>{}</password>", of(LETTERS, 12)),
    ],
    "api-key": [("api_key={}", of(LETTERS, 24)), ("X-Api-Key: {}", of(HEX, 32))],
    "secret": [("client_secret: {}", of(LETTERS, 24)), ("密钥：{}", of(LETTERS, 24))],
    "token": [("access_token={}&page=2", of(LETTERS, 24)), ("令牌：{}", of(HEX, 40))],
}
CASES = [(name, text, secret) for name, cases in PLANTED.items() for text, secret in cases]
SURROUNDINGS = {
    "alone": "{}",
    "in a sentence": "then it printed {} and stopped",
    "in a shell command": "echo '{}' | tee /tmp/out && exit 0",
    "beside Chinese": "结果是{}，然后停止",
    "on its own line": "first\n{}\nlast",
    "in colour": "\x1b[32m{}\x1b[0m",
}


def gone(secret: str, text: str) -> bool:
    """Tell that no line of the secret is left, in whatever way the text is escaped."""
    return not any(part in text for part in secret.split("\n"))


def test_every_rule_has_a_planted_secret():
    assert {rule.name for rule in RULES} == set(PLANTED)
    assert len(PLANTED) >= 26


@pytest.mark.parametrize("around", SURROUNDINGS.values(), ids=SURROUNDINGS)
@pytest.mark.parametrize(("name", "text", "secret"), CASES, ids=[name for name, _, _ in CASES])
def test_planted_secret_is_named_and_everything_else_kept(name, text, secret, around):
    whole = around.replace("{}", text)

    assert redact(whole.replace("{}", secret)) == whole.replace("{}", f"[redacted:{name}]")


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("name", "text", "secret"), CASES, ids=[name for name, _, _ in CASES])
def test_planted_secret_leaves_json_inside_json(name, text, secret, depth):
    said = text.replace("{}", secret)
    for _ in range(depth):
        said = json.dumps({"before": 1, "said": said, "after": [2]})

    clean = redact(said)

    assert gone(secret, clean)
    for _ in range(depth):
        assert (read := json.loads(clean))["after"] == [2]
        clean = read["said"]
    assert clean == text.replace("{}", f"[redacted:{name}]")


@pytest.mark.parametrize("quote", ['"', "'", "`"])
@pytest.mark.parametrize(
    "line",
    ["password: {}", "config[{key}] = {}", "const password: string = {};", "{key}: {},", "login(user, password={})"],
)
def test_quoted_password_is_taken_out_of_its_quotes(line, quote):
    line = line.replace("{key}", f"{quote}password{quote}")

    for secret in ("hunt" + "er2!", "let" + "mein", "20" + "240131", "Abc\\" + quote + "d1"):
        clean = redact(line.replace("{}", quote + secret + quote))
        assert clean == line.replace("{}", f"{quote}[redacted:password]{quote}")


class TestPrivateKeyBlocks:
    key = pem("EC " + "PRIVATE KEY")

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\\\\n", "\\r\\n", " ", "\n    ", "\n> ", "\n# "])
    def test_block_goes_whatever_its_newlines_are(self, newline):
        assert redact(f"x {self.key.replace(chr(10), newline)} y") == "x [redacted:private-key] y"

    @pytest.mark.parametrize("cut", [120, 250, 300, 400])
    def test_block_goes_when_it_is_cut_off(self, cut):
        clean = redact(f"cat key\n{self.key[:cut]}")

        assert clean == "cat key\n[redacted:private-key]"

    def test_text_behind_a_block_that_was_cut_off_stays(self):
        clean = redact("\n".join(self.key.split("\n")[:4]) + "\nok, that is enough\n")

        assert clean == "[redacted:private-key]\nok, that is enough\n"

    @pytest.mark.parametrize("mark", ["{:6}→", "{:6}\t", "{}:", "{} | "])
    def test_block_goes_when_its_lines_are_numbered(self, mark):
        lines = [mark.format(number) + line for number, line in enumerate(self.key.split("\n"), 1)]

        clean = redact("\n".join(lines))

        assert clean == mark.format(1) + "[redacted:private-key]"

    def test_block_goes_when_a_program_holds_it_line_by_line(self):
        program = " +\n".join(json.dumps(f"{line}\n") for line in self.key.split("\n"))

        assert gone(self.key, redact(f"KEY = {program};"))
        assert json.loads(redact(json.dumps({"lines": self.key.split("\n"), "next": "x"})))["next"] == "x"

    def test_headers_of_an_encrypted_key_go_with_it(self):
        lines = self.key.split("\n")
        lines[1:1] = ["Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-256-CBC," + upper(32), ""]

        assert redact("\n".join(lines)) == "[redacted:private-key]"

    def test_armoured_key_goes_with_its_checksum(self):
        lines = pem("PGP " + "PRIVATE KEY BLOCK").split("\n")
        lines[1:1] = ["Version: GnuPG v2", "Comment: made for a test", ""]
        lines[-1:-1] = ["=" + of(LETTERS, 4)]

        assert redact("\n".join(lines)) == "[redacted:private-key]"

    def test_mention_of_a_block_stays(self):
        text = "a key begins with -----BEGIN RSA " + "PRIVATE KEY----- and is secret"

        assert redact(text) == text


def look_alikes() -> list[str]:
    """List what must stay: ids, hashes, code, prose, public keys."""
    texts: list[str] = []
    for _ in range(8):
        sha1, sha256 = of(HEX, 40), of(HEX, 64)
        texts += [
            f"commit {sha1}",
            f"[main {sha1[:7]}] Keep isolated assets out of grep",
            f"index {sha1[:7]}..{of(HEX, 7)} 100644",
            f"sha256:{sha256}",
            f"{hashlib.md5(sha1.encode()).hexdigest()}  ./password.py",  # noqa: S324 - a look-alike, not a safeguard
            str(uuid.UUID(int=rng.getrandbits(128))),
            f'"integrity": "sha512-{b64encode(rng.randbytes(64)).decode()}"',
            f"data:image/png;base64,{b64encode(rng.randbytes(600)).decode()}",
            f"toolu_{of(LETTERS, 24)}",
            f"msg_{of(LETTERS, 24)}",
            f"call_{of(LETTERS, 24)}",
            f"req_{of(LETTERS, 24)}",
            f"task-{of(LOWER, 24)}",
            f"01{upper(24)}",
            f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{b64encode(rng.randbytes(32)).decode()} bob@host",
            f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAB{b64encode(rng.randbytes(255)).decode()} bob@host",
            pem("CERTIFICATE"),
            pem("PUBLIC KEY"),
            f"session_id={uuid.UUID(int=rng.getrandbits(128))}",
        ]
    return texts + (Path(__file__).parent / "look_alikes.txt").read_text("utf-8").splitlines()
