//! The default imports work, without a host behind them, the same way each time.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use common::{config, once, run, session};
use gimlet::cell::CellEnd;

#[tokio::test]
async fn every_default_module_can_be_imported() {
    let mut session = session(config()).await;
    let mut failed = Vec::new();
    for name in gimlet_python::imports::DEFAULT {
        let outcome = run(&mut *session, &format!("import {name}")).await;
        if outcome.end != (CellEnd::Done { value: None }) {
            failed.push(format!("{name}: {:?}", outcome.end));
        }
    }
    assert_eq!(failed, Vec::<String>::new());
}

#[tokio::test]
async fn a_module_taken_off_the_list_is_still_there_for_the_library() {
    let mut config = config();
    config.imports.retain(|name| name != "numbers");
    let mut session = session(config).await;
    let outcome = run(&mut *session, "import statistics, fractions\nstatistics.mean([1, 2, 3])").await;
    assert_eq!(outcome.value(), "2");
    for code in [
        "import numbers",
        // Nothing that code says about itself makes it part of the library.
        "__spec__ = __import__('json').__spec__\nimport numbers",
        "class Spec:\n    name = '__main__'\n__name__, __spec__ = 'json', Spec\nimport numbers",
    ] {
        let outcome = run(&mut *session, code).await;
        assert!(
            matches!(&outcome.end, CellEnd::Raised { kind, .. } if kind == "ImportError"),
            "{code}: {outcome:?}"
        );
    }
}

#[test]
fn the_documentation_names_every_module_and_stand_in() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(here.join("../../docs/python.md")).unwrap();
    let standins = std::fs::read_dir(here.join("standins")).unwrap().map(|entry| entry.unwrap().path());
    let standins = standins.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned());
    let names = gimlet_python::imports::DEFAULT.iter().map(|name| (*name).to_owned());
    let missing: Vec<String> = names
        .chain(standins.filter(|name| !name.starts_with('_')))
        .filter(|name| !page.contains(&format!("`{name}`")) && !page.contains(&format!("`{name}.")))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// Code and the `repr` of its last expression, as CPython gives it.
const WORK: &[(&str, &str)] = &[
    ("import json\njson.loads(json.dumps({'a': [1, None, True]}))", "{'a': [1, None, True]}"),
    ("import re\nre.findall(r'(\\w+)@(\\w+)', 'a@b c@d')", "[('a', 'b'), ('c', 'd')]"),
    (
        "import statistics\nstatistics.mean([1, 2, 3, 4]), statistics.stdev([1, 2, 3, 4])",
        "(2.5, 1.2909944487358056)",
    ),
    (
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int = 2\nP(1)",
        "P(x=1, y=2)",
    ),
    (
        "import datetime\ndatetime.datetime.strptime('2024-03-05 10:20', '%Y-%m-%d %H:%M')",
        "datetime.datetime(2024, 3, 5, 10, 20)",
    ),
    ("import datetime\n(datetime.date(2024, 3, 1) - datetime.date(2024, 2, 1)).days", "29"),
    (
        "import datetime\ndatetime.datetime(2024, 1, 2, 3, 4, 5).strftime('%A %d %B %Y %H:%M:%S')",
        "'Tuesday 02 January 2024 03:04:05'",
    ),
    ("import calendar\ncalendar.monthrange(2024, 2)", "(calendar.THURSDAY, 29)"),
    (
        "import random\nrandom.seed(42)\nrandom.random(), random.randint(1, 100), random.choice('abc')",
        "(0.6394267984578837, 4, 'c')",
    ),
    (
        "import uuid\nuuid.uuid5(uuid.NAMESPACE_DNS, 'python.org')",
        "UUID('886313e1-3b8a-5372-9b90-0c9aee199e5d')",
    ),
    (
        "import os\nos.path.join('a', 'b.txt'), os.path.splitext('b.txt'), os.path.basename('a/b'), os.sep, os.linesep",
        "('a/b.txt', ('b', '.txt'), 'b', '/', '\\n')",
    ),
    ("from os import path\nimport os.path\nos.path is path and path.normpath('a/../b')", "'b'"),
    ("import pathlib\npathlib.PurePath('/a/b') / 'c.txt'", "PurePosixPath('/a/b/c.txt')"),
    ("import pathlib\npathlib.Path('a/b.tar.gz').suffixes", "['.tar', '.gz']"),
    (
        "import contextlib\n@contextlib.contextmanager\ndef c():\n    yield 5\nwith c() as x:\n    pass\nx",
        "5",
    ),
    (
        "import traceback\ntry:\n    1/0\nexcept Exception:\n    t = traceback.format_exc()\nt.splitlines()[-1]",
        "'ZeroDivisionError: division by zero'",
    ),
    ("import collections\ncollections.Counter('abracadabra').most_common(2)", "[('a', 5), ('b', 2)]"),
    ("import itertools\nlist(itertools.pairwise([1, 2, 3]))", "[(1, 2), (2, 3)]"),
    (
        "import functools\n@functools.lru_cache\ndef f(n): return n if n < 2 else f(n-1) + f(n-2)\nf(80)",
        "23416728348467685",
    ),
    ("import decimal\ndecimal.Decimal('0.1') + decimal.Decimal('0.2')", "Decimal('0.3')"),
    ("import fractions\nfractions.Fraction(1, 3) + fractions.Fraction(1, 6)", "Fraction(1, 2)"),
    ("import hashlib\nhashlib.sha256(b'x').hexdigest()[:16]", "'2d711642b726b044'"),
    ("import hashlib\nhashlib.md5(b'x').hexdigest()", "'9dd4e461268c8034f5c8564e155c67a6'"),
    ("import base64\nbase64.b64encode(b'hello')", "b'aGVsbG8='"),
    ("import struct\nstruct.unpack('<IH', struct.pack('<IH', 1, 2))", "(1, 2)"),
    (
        "from urllib.parse import urlparse, quote, parse_qs\nurlparse('http://a.b/c?d=1').netloc, quote('a b'), parse_qs('x=1&x=2')",
        "('a.b', 'a%20b', {'x': ['1', '2']})",
    ),
    ("import csv, io\nlist(csv.DictReader(io.StringIO('a,b\\n1,2\\n')))", "[{'a': '1', 'b': '2'}]"),
    ("import io\nb = io.BytesIO(b'abc')\nb.seek(1)\nb.read()", "b'bc'"),
    ("import pprint\npprint.pformat({'b': 1, 'a': 2})", "\"{'a': 2, 'b': 1}\""),
    ("import html\nhtml.escape('<a>')", "'&lt;a&gt;'"),
    ("import difflib\ndifflib.get_close_matches('appel', ['ape', 'apple'])", "['apple', 'ape']"),
    ("import fnmatch\nfnmatch.filter(['a.py', 'b.txt'], '*.py')", "['a.py']"),
    ("import heapq\nheapq.nsmallest(2, [3, 1, 2])", "[1, 2]"),
    ("import bisect\nbisect.bisect([1, 3, 5], 4)", "2"),
    ("import enum\nclass C(enum.Enum):\n    A = 1\nC.A, C(1).name", "(<C.A: 1>, 'A')"),
    ("import typing\ntyping.Optional[int]", "int | None"),
    ("import zlib\nzlib.decompress(zlib.compress(b'x' * 100)) == b'x' * 100", "True"),
    ("import unicodedata\nunicodedata.name('é')", "'LATIN SMALL LETTER E WITH ACUTE'"),
    ("import queue\nq = queue.Queue()\nq.put(1)\nq.get()", "1"),
    ("import copy\na = [[1]]\nb = copy.deepcopy(a)\nb[0].append(2)\na", "[[1]]"),
    ("import string\nstring.ascii_lowercase[:3]", "'abc'"),
    ("import textwrap\ntextwrap.fill('aa bb cc', 5)", "'aa bb\\ncc'"),
    ("import time\ntime.strftime('%Y', time.gmtime(0)), time.localtime(0).tm_year", "('1970', 1970)"),
    ("import time\na = time.time()\ntime.sleep(100)\nround(time.time() - a)", "100"),
    (
        "import asyncio\nasync def f(x):\n    await asyncio.sleep(1)\n    return x * 2\nasync def main():\n    return await asyncio.gather(f(1), f(2))\nasyncio.run(main())",
        "[2, 4]",
    ),
    (
        "import asyncio\nasync def f():\n    async with asyncio.timeout(1):\n        await asyncio.sleep(5)\ntry:\n    asyncio.run(f())\nexcept TimeoutError:\n    x = 'late'\nx",
        "'late'",
    ),
    ("import logging\nlogging.getLogger('x').setLevel('INFO')\nlogging.getLevelName(20)", "'INFO'"),
    (
        "import xml.etree.ElementTree as E\nE.fromstring('<a><b c=\"1\">t</b></a>').find('b').attrib",
        "{'c': '1'}",
    ),
    ("import tomllib\ntomllib.loads('a = 1')", "{'a': 1}"),
    (
        "import datetime\ndatetime.datetime(2024, 1, 1, tzinfo=datetime.UTC).isoformat()",
        "'2024-01-01T00:00:00+00:00'",
    ),
    ("import cmath\ncmath.sqrt(-1)", "1j"),
    ("import types\ntypes.SimpleNamespace(a=1)", "namespace(a=1)"),
    ("import operator\noperator.itemgetter(1)([1, 2])", "2"),
    ("import inspect\nstr(inspect.signature(lambda a, b=1: 0))", "'(a, b=1)'"),
    ("import threading\nwith threading.Lock():\n    x = 1\nx", "1"),
    (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int)\np.parse_args(['--n', '3']).n",
        "3",
    ),
    ("import secrets\nlen(secrets.token_hex(8))", "16"),
    ("import shlex\nshlex.split('a \"b c\"')", "['a', 'b c']"),
    ("import ipaddress\nipaddress.ip_network('10.0.0.0/30').num_addresses", "4"),
    ("import array\narray.array('i', [1, 2]).tolist()", "[1, 2]"),
    ("import graphlib\nlist(graphlib.TopologicalSorter({'b': {'a'}}).static_order())", "['a', 'b']"),
    ("import sys\nsys.version_info >= (3, 11), sys.maxsize > 2**60", "(True, True)"),
    ("import abc, numbers\nisinstance(1, numbers.Integral)", "True"),
    (
        "import warnings\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    warnings.warn('x')\n1",
        "1",
    ),
];

#[tokio::test]
async fn the_library_works_without_a_host() {
    let mut session = session(config()).await;
    let mut wrong = Vec::new();
    for (code, expected) in WORK {
        let outcome = run(&mut *session, code).await;
        if outcome.end != (CellEnd::Done { value: Some((*expected).to_owned()) }) {
            wrong.push(format!("{code}\n  expected {expected}\n  got {:?}", outcome.end));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn each_module_alone_in_a_fresh_session() {
    // One module may load what another needs; these were once missing without it.
    for name in [
        "random",
        "statistics",
        "dataclasses",
        "uuid",
        "pathlib",
        "contextlib",
        "traceback",
        "asyncio",
        "logging",
    ] {
        assert_eq!(once(&format!("import {name}")).await.end, CellEnd::Done { value: None }, "{name}");
    }
    assert_eq!(once("from datetime import datetime\ndatetime.strptime('1', '%d').day").await.value(), "1");
}

#[tokio::test]
async fn the_clock_and_chance_belong_to_the_session() {
    let code = "import random, uuid, time, datetime, secrets\n[random.random(), random.Random().random(), uuid.uuid4().hex, uuid.uuid1().hex, secrets.token_hex(4), hash('x'), time.time(), time.monotonic(), datetime.datetime.now().isoformat(), datetime.date.today().isoformat(), list({'b', 'a', 'c'}), datetime.datetime.now(datetime.UTC).isoformat(), time.strftime('%Y-%m-%d %H'), time.ctime()]";
    let first = once(code).await.value().to_owned();
    assert_eq!(once(code).await.value(), first);
    assert!(first.contains("2023-11-14"), "{first}");
}

#[tokio::test]
async fn the_allowlist_can_be_changed() {
    let mut narrow = config();
    narrow.imports = vec!["math".into()];
    let mut narrow = session(narrow).await;
    assert_eq!(run(&mut *narrow, "import math\nmath.pi > 3").await.value(), "True");
    let refused = run(&mut *narrow, "import json").await;
    assert!(refused.traceback().contains("ImportError: import of 'json' is not allowed"), "{refused:?}");
    let mut wide = config();
    wide.imports.push("linecache".into());
    let mut wide = session(wide).await;
    assert_eq!(run(&mut *wide, "import linecache").await.end, CellEnd::Done { value: None });
}
