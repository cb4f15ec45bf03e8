"""AWS credentials: found where people have them, refused in one line, told nobody; signatures as AWS documents them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from millstream import Call, ConfigurationError, Settings
from millstream.engine.endpoint import Request
from millstream.providers.credentials.authorizer import NO_CREDENTIALS, Authorizer, CredentialsError, FixedHeaders
from millstream.providers.credentials.aws import AwsAuthorizer, aws_authorizer, keys_of, located
from millstream.providers.credentials.aws_signature import Keys, Signer
from millstream.providers.llm.protocol import Target
from millstream.providers.transport.transport import Transport
from millstream.wiring import access_to, endpoint_to

ACCESS, SECRET, TOKEN = "AKIACANARYKEY1234567", "cAnArY/secret+0123456789abcdefghijklmnop", "cAnArY+token/" + "x" * 300
KEYS = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
HOST = "https://bedrock-runtime.amazonaws.com"
TARGET = Target("https://bedrock-runtime.eu-west-1.amazonaws.com", "x", "m", "bedrock", region="eu-west-1")
AT = datetime(2026, 11, 2, 10, 0, tzinfo=UTC)


def request_to(url: str, body: bytes = b"", **changes: Any) -> Request:
    return structs.replace(Request(url, "", body, body, b"", b""), **changes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a profile of each kind, and the variables in `at` that lead to them."""
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = {ACCESS}\naws_secret_access_key={SECRET}\n\n"
        f"# another\n[work]\naws_access_key_id=AKIAWORKWORKWORKWORK\naws_secret_access_key=work%secret;0123456789\n"
        f"aws_session_token={TOKEN}\n\n[half]\naws_access_key_id={ACCESS}\n"
    )
    (tmp_path / "config").write_text(
        "[default]\nregion = eu-west-3\n\n[profile work]\nregion=us-east-2\ns3 =\n  max_queue_size = 10\n\n"
        '[profile "two words"]\naws_access_key_id=AKIATWO\naws_secret_access_key=two\n\n'
        "[profile none]\nregion=us-west-2\n"
        "[profile process]\ncredential_process = /bin/tool\n[profile login]\nlogin_session=x\n"
        "[work]\nregion=not-this\n[sso-session session]\nregion=not-this\n[broken 'name]\nregion=nor-this\n"
        + "".join(
            f"[profile {one}]\n{one}=x\naws_access_key_id={ACCESS}\naws_secret_access_key={SECRET}\n"
            for one in ("role_arn", "sso_session", "sso_start_url", "web_identity_token_file")
        )
    )
    return tmp_path


def at(folder: Path, **more: str) -> dict[str, str]:
    files = {"AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"), "AWS_CONFIG_FILE": str(folder / "config")}
    return {**files, **more}


def said_of(variables: Mapping[str, str], target: Target = TARGET) -> str:
    """What is said where there are no credentials to be had."""
    with pytest.raises(CredentialsError) as raised:
        aws_authorizer(None, variables, target)
    said = str(raised.value)
    assert "\n" not in said and ACCESS not in said and SECRET not in said and TOKEN not in said
    return said


# --- signatures ---

SUITE = Keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SUITE_AT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)


@pytest.mark.parametrize(
    ("method", "path", "signature"),
    [
        ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
    ],
)
def test_a_signature_is_the_one_that_awss_own_examples_have(method: Any, path: str, signature: str) -> None:
    request = request_to(f"https://example.amazonaws.com{path}", method=method)
    signed = Signer(SUITE, "us-east-1", "service").signed(request, {}, SUITE_AT)
    assert signed == {
        "X-Amz-Date": "20150830T123600Z",
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders=host;x-amz-date, Signature={signature}",
    }


def test_the_key_of_a_day_is_made_anew_with_the_day() -> None:
    request = request_to("https://h.example/")
    signer = Signer(SUITE, "us-east-1", "service")
    days = [AT, AT.replace(day=3), AT]
    fresh = [Signer(SUITE, "us-east-1", "service").signed(request, {}, day) for day in days]
    assert [signer.signed(request, {}, day) for day in days] == fresh


# --- where credentials come from ---


def test_keys_come_from_the_environment_before_any_profile(folder: Path) -> None:
    given = {"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": " env \n"}
    assert keys_of(at(folder, AWS_PROFILE="work", **given)) == Keys("AKIAENV", "env")
    assert keys_of({**given, "AWS_SESSION_TOKEN": TOKEN}) == Keys("AKIAENV", "env", TOKEN)


def test_keys_come_from_the_profile_that_is_named_or_from_the_default(folder: Path) -> None:
    work = Keys("AKIAWORKWORKWORKWORK", "work%secret;0123456789", TOKEN)
    assert keys_of(at(folder)) == Keys(ACCESS, SECRET)
    assert keys_of(at(folder, AWS_PROFILE="work")) == work
    assert keys_of(at(folder, AWS_DEFAULT_PROFILE="work")) == work
    assert keys_of(at(folder, AWS_PROFILE="two words")) == Keys("AKIATWO", "two")
    assert keys_of(at(folder, AWS_PROFILE="none")) is None
    with (folder / "config").open("a") as file:
        file.write("[profile half]\naws_access_key_id=AKIAELSEWHERE\naws_secret_access_key=from-the-config\n")
    assert keys_of(at(folder, AWS_PROFILE="half")) == Keys(ACCESS, "from-the-config")


def test_files_that_are_not_there_hold_nothing(tmp_path: Path) -> None:
    assert keys_of(at(tmp_path)) is None
    assert located(at(tmp_path), structs.replace(TARGET, region=None)).region is None


def test_a_profile_that_is_nowhere_is_refused(folder: Path) -> None:
    assert "'session' is neither in" in said_of(at(folder, AWS_PROFILE="session"))
    said = said_of(at(folder, AWS_PROFILE="nobody"))
    assert "'nobody'" in said and str(folder / "credentials") in said and str(folder / "config") in said


@pytest.mark.parametrize("name", ["role_arn", "sso_session", "sso_start_url", "web_identity_token_file"])
def test_a_profile_that_asks_for_more_than_its_keys_is_refused_with_a_way_out(folder: Path, name: str) -> None:
    said = said_of(at(folder, AWS_PROFILE=name))
    assert f"has {name}, and only keys are taken here" in said
    assert f"aws configure export-credentials --profile {name} --format env" in said


@pytest.mark.parametrize(("name", "asks"), [("process", "credential_process"), ("login", "login_session")])
def test_a_profile_with_another_source_of_keys_is_refused_where_it_has_none(folder: Path, name: str, asks: str) -> None:
    assert f"has {asks}" in said_of(at(folder, AWS_PROFILE=name))
    with (folder / "credentials").open("a") as file:
        file.write(f"\n[{name}]\naws_access_key_id={ACCESS}\naws_secret_access_key={SECRET}\n")
    assert keys_of(at(folder, AWS_PROFILE=name)) == Keys(ACCESS, SECRET)


def test_half_a_key_is_refused(folder: Path) -> None:
    assert "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY isn't" in said_of({"AWS_ACCESS_KEY_ID": ACCESS})
    assert "AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID isn't" in said_of({"AWS_SECRET_ACCESS_KEY": SECRET})
    assert "has no aws_secret_access_key" in said_of(at(folder, AWS_PROFILE="half"))


def test_roles_are_refused_with_a_way_out(tmp_path: Path) -> None:
    assert "asks for a role" in said_of(at(tmp_path, AWS_WEB_IDENTITY_TOKEN_FILE="/token"))
    said = said_of(at(tmp_path))
    assert "no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in said
    assert "roles of containers and instances aren't offered" in said


@pytest.mark.parametrize("content", [f"aws_secret_access_key={SECRET}\n", f"[default]\n{SECRET}\n =x\n", "\xff"])
def test_a_file_that_can_not_be_read_is_told_without_its_lines(folder: Path, content: str) -> None:
    (folder / "credentials").write_bytes(content.encode("latin-1"))
    assert "is no file of AWS profiles" in said_of(at(folder))
    # Where only the region is asked for, it is no concern yet.
    assert located(at(folder), TARGET).region == "eu-west-1"
    assert "can't be read (Is a directory)" in said_of(at(folder) | {"AWS_CONFIG_FILE": str(folder)})


@pytest.mark.parametrize("odd", ["AKIA\nX-Evil: 1", "AKIA key", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused(odd: str) -> None:
    assert "characters that no header can carry" in said_of({**KEYS, "AWS_ACCESS_KEY_ID": odd})
    assert "characters that no header can carry" in said_of({**KEYS, "AWS_SESSION_TOKEN": odd})


def test_a_bearers_token_goes_before_keys_and_needs_none() -> None:
    for variables in (KEYS, {}, {"AWS_ACCESS_KEY_ID": ACCESS}):
        found = aws_authorizer("token-0123456789", variables, TARGET)
        assert isinstance(found, FixedHeaders) and found.fixed == {"Authorization": "Bearer token-0123456789"}


def test_a_server_that_is_not_awss_needs_no_credentials_and_gets_those_that_there_are(tmp_path: Path) -> None:
    local = structs.replace(TARGET, base_url="http://127.0.0.1:1", region=None)
    assert aws_authorizer(None, at(tmp_path), local) is NO_CREDENTIALS
    assert isinstance(aws_authorizer("token", {}, local), FixedHeaders)
    assert "a region is needed: set AWS_REGION" in said_of(KEYS, local)
    found: Authorizer = aws_authorizer(None, KEYS, structs.replace(local, region="eu-west-1"))
    assert isinstance(found, AwsAuthorizer)


# --- where it is asked ---


@pytest.mark.parametrize(
    ("region", "url"),
    [
        ("us-east-1", "https://bedrock-runtime.us-east-1.amazonaws.com"),
        ("us-gov-west-1", "https://bedrock-runtime.us-gov-west-1.amazonaws.com"),
        ("cn-north-1", "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"),
        ("eusc-de-east-1", "https://bedrock-runtime.eusc-de-east-1.amazonaws.eu"),
    ],
)
def test_a_region_has_its_host(region: str, url: str) -> None:
    target = located({}, Target(HOST, HOST, "m", region=region))
    assert (target.base_url, target.identity, target.region) == (url, url, region)
    named = located({}, Target(HOST, "mine", "m", region=region))
    assert (named.base_url, named.identity) == (url, "mine")
    own = Target("http://127.0.0.1:1", "x", "m", region=region)
    assert located({}, own) == own


def test_the_region_is_the_variables_before_the_profiles(folder: Path) -> None:
    def region(**environment: str) -> str | None:
        return access_to("bedrock/m", Settings(environment=at(folder, **environment))).target.region

    assert region() == "eu-west-3"
    assert region(AWS_PROFILE="work") == "us-east-2"
    assert region(AWS_PROFILE="work", AWS_DEFAULT_REGION="r2") == "r2"
    assert region(AWS_REGION="r1", AWS_DEFAULT_REGION="r2") == "r1"


def test_what_is_missing_is_said_before_anything_is_sent(folder: Path, tmp_path: Path) -> None:
    def said(**environment: str) -> str:
        with pytest.raises(ConfigurationError) as raised:
            endpoint_to(access_to("bedrock/m", Settings(environment=environment)), Transport(), 1.0)
        return str(raised.value)

    nothing = at(tmp_path / "nothing")
    missing = "a region is needed: set AWS_REGION, or give it to the profile, or under [providers.bedrock]"
    assert missing in said(**nothing, **KEYS)
    assert missing in said(**nothing, AWS_BEARER_TOKEN_BEDROCK="token-0123456789")
    assert said(**nothing, AWS_REGION="eu-west-1").startswith("model 'bedrock/m': no AWS credentials")
    assert "is neither in" in said(**at(folder), AWS_PROFILE="x", AWS_REGION="eu-west-1")


def test_a_configured_endpoint_asks_the_address_that_is_set(folder: Path) -> None:
    address = {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://127.0.0.1:1/"}
    endpoint = endpoint_to(access_to("bedrock/a:0", Settings(environment=at(folder, **address))), Transport(), 1.0)
    assert endpoint.encode(Call("bedrock/a:0", "x")).url == "http://127.0.0.1:1/model/a%3A0/converse"


@pytest.mark.parametrize(("host", "service"), [("bedrock-runtime", "bedrock"), ("bedrock-mantle", "bedrock-mantle")])
def test_an_address_is_signed_for_in_its_own_services_name(host: str, service: str, folder: Path) -> None:
    address = {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": f"https://{host}.eu-west-1.api.aws", "AWS_REGION": "eu-west-1"}
    environment = at(folder, **address, AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET)
    authorizer = access_to("bedrock/anthropic.claude-opus-5-5", Settings(environment=environment)).authorizer()
    assert repr(authorizer) == f"<AwsAuthorizer [<Signer [{service} in eu-west-1]>]>"


# --- secrets ---


def test_nothing_that_can_be_printed_tells_a_key() -> None:
    authorizer = AwsAuthorizer(Keys(ACCESS, SECRET, TOKEN), "eu-west-1")
    printed = repr(authorizer) + repr(Keys(ACCESS, SECRET, TOKEN)) + repr(Signer(SUITE, "r", "s"))
    assert not any(secret in printed for secret in (ACCESS, SECRET, TOKEN, SUITE.secret, SUITE.access))
    assert authorizer.secrets == (SECRET, TOKEN, ACCESS)
    assert repr(authorizer) == "<AwsAuthorizer [<Signer [bedrock in eu-west-1]>]>"
