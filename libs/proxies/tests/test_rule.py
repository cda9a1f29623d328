"""The rule of HTTP_PROXY, HTTPS_PROXY and NO_PROXY."""

from __future__ import annotations

import pytest
from kubevnfm_proxies.rule import Proxies, ProxyFault


@pytest.mark.parametrize(
    ("url", "exceptions", "is_direct"),
    [
        ("https://gw.example:9890", "", False),
        ("https://gw.example:9890", " , ", False),
        ("https://gw.example:9890", "*", True),
        ("https://gw.example:9890", "other.example, .example", True),
        ("https://gw.example:9890", "*.example", True),
        ("https://gw.example:9890", "GW.example.", True),
        ("https://gw.example.:9890", "gw.EXAMPLE", True),
        ("https://gw.example:9890", "ample,w.example", False),
        ("https://gw.example:9890", "gw.example:9890", True),
        ("https://gw.example:9890", "gw.example:443", False),
        ("https://gw.example", ".example:443", True),
        ("http://gw.example", ".example:443", False),
        ("https://10.1.2.3", "10.1.0.0/16", True),
        ("https://10.1.2.3", "10.1.2.3/16", True),
        ("https://10.1.2.3:8443", "10.1.0.0/16:8443", True),
        ("https://10.1.2.3", "10.1.0.0/16:8443", False),
        ("https://10.1.2.3", "10.2.0.0/16,10.1.2.30,2.3", False),
        ("https://[::ffff:10.1.2.3]", "10.1.0.0/16", True),
        ("https://10.1.2.3", "::ffff:10.1.0.0/112", True),
        ("https://[fd00::7]:9890", "fd00::/8", True),
        ("https://[fd00::7]:9890", "[fd00::7]", True),
        ("https://[fd00::7]:9890", "[fd00::7]:9890", True),
        ("https://[fd00::7]:9890", "[fd00::7]:443", False),
        ("https://[fe80::7%25eth0]:9890", "fe80::/10", True),
        ("https://127.3.2.1:9890", "", True),
        ("https://0.0.0.0:9890", "", True),
        ("http://LOCALHOST", "", True),
        ("http://web.localhost", "", True),
        ("http://localhost.example", "", False),
        ("http://[::1]:80", "", True),
        ("http://[::ffff:127.0.0.1]", "", True),
        ("ws://gw.example", "", True),
        ("no url", "", True),
        ("http://[x", "", True),
    ],
)
def test_no_proxy_leaves_servers_out(url: str, exceptions: str, *, is_direct: bool) -> None:
    environment = {"HTTP_PROXY": "p:3128", "https_proxy": "http://p:3128/", "NO_PROXY": exceptions}
    assert (Proxies.read(environment).to(url) is None) is is_direct


def test_each_scheme_has_its_proxy_and_lower_case_is_before_upper_case() -> None:
    environment = {"http_proxy": "a", "HTTP_PROXY": "b", "HTTPS_PROXY": "http://[fd00::1]:3128", "https_proxy": " "}
    rule = Proxies.read({**environment, "NO_PROXY": "x", "no_proxy": "y", "ALL_PROXY": "socks5://c"})
    assert [str(rule.to(f"{scheme}://gw.example")) for scheme in ("http", "https")] == [
        "proxy a:80",
        "proxy [fd00::1]:3128",
    ]
    assert (rule.to("http://x") is None, rule.to("http://y") is None) == (False, True)
    assert rule.named == {"http": "http_proxy", "https": "HTTPS_PROXY"}
    assert not Proxies.read({"NO_PROXY": "10.0.0.0/33", "ALL_PROXY": "x"})


def test_our_own_services_are_left_out_by_host_and_port() -> None:
    rule = Proxies.read({"HTTP_PROXY": "p:3128"}).without("http://Own:8080/x", None)
    assert rule.to("http://own:8080/y") is None
    assert rule.to("http://own:8081/y") is not None


@pytest.mark.parametrize("text", ["https://p:3128", "http://", "http://p:port", "http://p:0", "http://p/path", "p q"])
def test_a_proxy_that_is_none_is_refused_by_the_name_of_its_variable(text: str) -> None:
    with pytest.raises(ProxyFault, match="HTTPS_PROXY: http://HOST:PORT expected"):
        Proxies.read({"HTTPS_PROXY": text})


@pytest.mark.parametrize("text", ["10.0.0.0/33", "192.168.*", "http://x", "a b", ":80", "."])
def test_an_exception_that_leaves_nothing_out_is_refused(text: str) -> None:
    with pytest.raises(ProxyFault) as refused:
        Proxies.read({"http_proxy": "socks5://u:s3cret@p", "no_proxy": f"a.example,{text}", "HTTPS_PROXY": "p"})
    assert "http_proxy: http://HOST:PORT expected; proxies of other kinds (socks5) are not used" in str(refused.value)
    assert f"no_proxy: {text}: a name, a domain" in str(refused.value)


@pytest.mark.parametrize("text", ["http://u:s3cret@p:x", "socks5://u:s3cret@p", "http://u:s3cret@p/x", "u:s3cret@"])
def test_a_login_is_in_no_error_and_in_no_representation(text: str) -> None:
    with pytest.raises(ProxyFault) as refused:
        Proxies.read({"http_proxy": text})
    assert "s3cret" not in str(refused.value)
    proxy = Proxies.read({"http_proxy": "http://u%40x:s3cret%2F@p"}).to("http://gw.example")
    assert proxy is not None
    assert "s3cret" not in f"{proxy} {proxy!r} {proxy.url}"
    assert proxy.headers == {"Proxy-Authorization": "Basic dUB4OnMzY3JldC8="}
    assert proxy.url_with_login == "http://u%40x:s3cret%2F@p:80"
