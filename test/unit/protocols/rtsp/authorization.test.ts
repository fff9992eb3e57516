import { createHash } from 'node:crypto';
import test from 'ava';
import { Authorization, unauthorized } from '../../../../src/protocols/rtsp/authorization.ts';

const hash = (algorithm: string, text: string) => createHash(algorithm).update(text).digest('hex');
const fieldOf = (text: string | undefined, name: string) => new RegExp(`${name}="?([^",]*)"?`).exec(text ?? '')?.[1];

test('RTSP credentials are not sent before they are asked for', (t) => {
  const authorization = new Authorization('user', 'secret');
  t.is(authorization.field('DESCRIBE', 'rtsp://cam/'), undefined);
  t.false(authorization.take([]));
  t.false(
    authorization.take([
      'Negotiate',
      'Digest realm="x"',
      'Digest nonce="1", algorithm=SHA-512',
      'Digest nonce="1", algorithm=constructor',
      'Digest nonce="1", qop="auth-conf"',
      '',
      '=,,="',
    ]),
  );
  t.is(authorization.field('DESCRIBE', 'rtsp://cam/'), undefined);
});

test('Basic (RFC 7617 section 2)', (t) => {
  const authorization = new Authorization('Aladdin', 'open sesame');
  t.true(authorization.take(['Basic realm="WallyWorld"']));
  t.is(authorization.field('DESCRIBE', 'rtsp://cam/'), 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==');
  // it was answered already
  t.false(authorization.take(['Basic realm="WallyWorld"']));
});

test('Digest without qop, as in RFC 2069', (t) => {
  const authorization = new Authorization('Mufasa', 'CircleOfLife');
  t.true(
    authorization.take([
      'Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"',
    ]),
  );
  const field = authorization.field('GET', '/dir/index.html');
  t.is(fieldOf(field, 'response'), '1949323746fe6a43ef61f9606e7febea');
  t.is(fieldOf(field, 'opaque'), '5ccc069c403ebaf9f0171e9517f40e41');
  t.is(fieldOf(field, 'cnonce'), undefined);
});

test('Digest with qop, MD5, SHA-256 and SHA-512-256, counts the uses of a nonce (RFC 7616 section 3.4)', (t) => {
  for (const [algorithm, name] of [
    ['MD5', 'md5'],
    ['SHA-256', 'sha256'],
    ['SHA-512-256', 'sha512-256'],
  ] as const) {
    const authorization = new Authorization('Mufasa', 'Circle of Life');
    t.true(
      authorization.take([
        `Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=${algorithm}, nonce="7ypf/x", opaque="FQh"`,
      ]),
    );
    for (const count of ['00000001', '00000002']) {
      const field = authorization.field('GET', '/dir/index.html');
      t.is(fieldOf(field, 'nc'), count);
      const one = hash(name, 'Mufasa:http-auth@example.org:Circle of Life');
      const two = hash(name, 'GET:/dir/index.html');
      t.is(fieldOf(field, 'response'), hash(name, `${one}:7ypf/x:${count}:${fieldOf(field, 'cnonce')}:auth:${two}`));
      t.regex(field ?? '', /qop=auth,/);
    }
  }
});

test('the strongest of several RTSP challenges is met, in one field or more', (t) => {
  const md5 = 'Digest realm="r", nonce="a"';
  const sha = 'Digest realm="r", nonce="b", algorithm=SHA-256';
  const sha512 = 'Digest realm="r", nonce="c", algorithm=SHA-512-256';
  for (const [fields, expected] of [
    [['Basic realm="r"', md5], /^Digest .*nonce="a"/],
    [[`Basic realm="r", ${md5}, ${sha}`], /^Digest .*nonce="b"/],
    [[sha, 'Basic realm="r"'], /nonce="b"/],
    [['Basic realm="r"', md5, sha512, sha], /nonce="c"/],
    [['Digest realm="r", nonce="d", algorithm=SHA-512', md5], /nonce="a"/],
  ] as const) {
    const authorization = new Authorization('u', 'p');
    t.true(authorization.take(fields));
    t.regex(authorization.field('DESCRIBE', '/') ?? '', expected);
  }
});

test('a new nonce is answered, and the same one only when it is stale', (t) => {
  const authorization = new Authorization('u', 'p');
  t.true(authorization.take(['Digest realm="r", nonce="a"']));
  t.false(authorization.take(['Digest realm="r", nonce="a"']));
  t.true(authorization.take(['Digest realm="r", nonce="a", stale=TRUE']));
  t.true(authorization.take(['Digest realm="r", nonce="b", stale=true']));
  t.regex(authorization.field('PLAY', '/') ?? '', /nonce="b"/);
});

test('quotes in names stay inside theirs', (t) => {
  const authorization = new Authorization('a"b\\', 'p');
  t.true(authorization.take(['Digest realm="x\\"y", nonce="n"']));
  t.regex(authorization.field('PLAY', '/') ?? '', /username="a\\"b\\\\", realm="x\\"y"/);
});

test('a request whose body is protected, too, has none (RFC 7616 section 3.4.3)', (t) => {
  const authorization = new Authorization('u', 'p');
  t.true(authorization.take(['Digest realm="r", nonce="n", qop="auth-int"']));
  const field = authorization.field('PLAY', 'rtsp://cam/');
  const two = hash('md5', `PLAY:rtsp://cam/:${hash('md5', '')}`);
  const middle = `n:00000001:${fieldOf(field, 'cnonce')}:auth-int`;
  t.is(fieldOf(field, 'response'), hash('md5', `${hash('md5', 'u:r:p')}:${middle}:${two}`));
  t.is(fieldOf(field, 'qop'), 'auth-int');
});

test('a reason for 401 is given: no user, no supported scheme, or wrong credentials', (t) => {
  t.regex(unauthorized(undefined), /the URL has none \(401\)$/);
  const authorization = new Authorization('u', 'p');
  t.regex(unauthorized(authorization), /does not accept the credentials of the URL \(401\)$/);
  t.false(authorization.take(['Digest nonce="1", algorithm=SHA-512, qop="auth"', 'NTLM']));
  t.regex(unauthorized(authorization), /not supported \(401\): Digest algorithm=SHA-512 qop=auth, Ntlm$/);
  t.true(authorization.take(['Basic realm="x"']));
  t.false(authorization.take(['Basic realm="x"']));
  t.regex(unauthorized(authorization), /does not accept/);
});
