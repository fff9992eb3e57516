import test from 'ava';
import { signUrl } from '../../../src/access/policy/sign.ts';
import { readSignArguments, type CheckWanted, type SignWanted } from '../../../src/cli/sign-arguments.ts';
import { checkUrl } from '../../../src/cli/sign-check.ts';

const NOW = Date.parse('2030-01-01T00:00:00Z');
const HOUR = 3_600_000;
const URL = 'https://live.example:3334/app/stream/master.m3u8';
const SIGN = ['--url', URL, '--key', 'k'];

const read = (...args: string[]) => readSignArguments(args, NOW);
const fields = (...args: string[]) => (read(...SIGN, ...args) as SignWanted).fields;
const signed = (...args: string[]): string => {
  const { url, fields: policy, signing } = read(...SIGN, '--expire', '1h', ...args) as SignWanted;
  return signUrl(url, policy, signing);
};
const check = (url: string, more: readonly string[] = [], key = 'k', now = NOW) =>
  checkUrl(read('--check', url, '--key', key, ...more) as CheckWanted, now);

test('times are from now, or dates', (t) => {
  t.deepEqual(fields('--expire', '90s'), { url_expire: NOW + 90_000 });
  t.deepEqual(fields('--expire', '1.5h'), { url_expire: NOW + 1.5 * HOUR });
  t.deepEqual(fields('--expire', '7d', '--activate', '15m', '--stream-expire', '2031-01-01T00:00:00+01:00'), {
    url_expire: NOW + 7 * 24 * HOUR,
    url_activate: NOW + HOUR / 4,
    stream_expire: Date.parse('2030-12-31T23:00:00Z'),
  });
  t.deepEqual(fields('--expire', '2030-01-02', '--ip', '10.0.0.0/8', '--real-ip', '::1'), {
    url_expire: NOW + 24 * HOUR,
    allow_ip: '10.0.0.0/8',
    real_ip: '::1',
  });
});

test('the port is added, and the host is as clients send it', (t) => {
  const url = (given: string) => (read('--url', given, '--key', 'k', '--expire', '1h') as SignWanted).url;
  t.is(url('HTTPS://Live.Example/App/S?A=%2f'), 'https://live.example:443/App/S?A=%2f');
  t.is(url('rtmp://h/app/s'), 'rtmp://h:1935/app/s');
  t.is(url('ws://[::1]/app/s'), 'ws://[::1]:80/app/s');
  t.is(url('srt://h:9999/app/s'), 'srt://h:9999/app/s');
});

const WRONG: readonly (readonly [args: readonly string[], message: RegExp])[] = [
  [[], /either --url or --check is needed/],
  [[...SIGN, '--check', URL], /either --url or --check is needed/],
  [['--url', URL, '--expire', '1h'], /--key is needed/],
  [SIGN, /--expire is needed/],
  [[...SIGN, '--expire', 'soon'], /--expire: "soon" is neither a time/],
  [[...SIGN, '--expire', '1'], /--expire: "1" is neither a time/],
  [[...SIGN, '--expire', '99999999999d'], /--expire: "99999999999d" is neither a time/],
  [[...SIGN, '--expire', '2029-01-01'], /--expire: is over already/],
  [[...SIGN, '--expire', '1h', '--activate', '2h'], /--activate: is not before --expire/],
  [[...SIGN, '--expire', '1h', '--ip', '10.0.0.0/40'], /--ip: "10.0.0.0\/40" is no network/],
  [[...SIGN, '--expire', '1h', '--algorithm', 'md5'], /--algorithm: "md5" is neither sha1 nor sha256/],
  [[...SIGN, '--expire', '1h', '--signature-name', 'policy'], /--signature-name: is empty, or that of the policy/],
  [[...SIGN, '--expire', '1h', '--more'], /Unknown option '--more'/],
  [['--url', 'srt://h/app/s', '--key', 'k', '--expire', '1h'], /--url: the URL has no port/],
  [['--url', 'ftp://h/app/s', '--key', 'k', '--expire', '1h'], /--url: "ftp:\/\/h\/app\/s" is no URL of http/],
  [['--url', 'h/app/s', '--key', 'k', '--expire', '1h'], /--url: "h\/app\/s" is no URL/],
  [['--url', `${URL}#a`, '--key', 'k', '--expire', '1h'], /--url: what follows a #/],
  [['--url', `${URL}?policy=a`, '--key', 'k', '--expire', '1h'], /--url: the URL has a parameter policy already/],
  [['--check', URL, '--key', 'k', '--expire', '1h'], /--expire is for --url/],
  [['--check', URL, '--key', 'k', '--ip', '10.0.0.0/8'], /--ip: "10.0.0.0\/8" is no address/],
];

for (const [args, message] of WRONG) {
  test(`wrong arguments: ${args.join(' ')}`, (t) => {
    t.throws(() => readSignArguments(args, NOW), { message });
  });
}

test('a signed URL is accepted, also by other names and with SHA-256', (t) => {
  t.deepEqual(check(signed('--stream-expire', '2h')), {
    isAccepted: true,
    lines: [
      'accepted',
      'url_expire: 2030-01-01T01:00:00.000Z (in 3600 s)',
      'stream_expire: 2030-01-01T02:00:00.000Z (in 7200 s)',
    ],
  });
  const more = ['--algorithm', 'sha256', '--policy-name', 'p', '--signature-name', 's'];
  t.true(check(signed(...more), more).isAccepted);
});

test('a check says why a URL is rejected', (t) => {
  const why = (...given: Parameters<typeof check>) => {
    const { isAccepted, lines } = check(...given);
    t.false(isAccepted);
    return lines;
  };
  t.deepEqual(why(signed(), [], 'k', NOW + 2 * HOUR), [
    'refused: the URL expired at 2030-01-01T01:00:00.000Z',
    'url_expire: 2030-01-01T01:00:00.000Z (3600 s ago)',
  ]);
  t.is(why(signed('--activate', '10m'))[0], 'refused: the URL is not valid before 2030-01-01T00:10:00.000Z');
  t.is(
    why(signed('--ip', '10.0.0.0/8'), ['--ip', '192.0.2.1'])[0],
    'refused: the address of the connection is not in allow_ip',
  );
  t.is(why(URL)[0], 'refused: the URL has no policy (parameter policy)');
  const url = signed();
  const text = url.replace(/&signature=.*/, '');
  const other = signUrl(
    URL,
    { url_expire: NOW + HOUR },
    { ...(read(...SIGN, '--expire', '1h') as SignWanted).signing, secretKey: 'k2' },
  );
  t.deepEqual(why(url, [], 'k2'), [
    'refused: the signature of the URL is not that of its text',
    `text to sign: ${text}`,
    `its signature: ${other.replace(/.*signature=/, '')} (sha1)`,
  ]);
  t.is(
    why(signed('--algorithm', 'sha256')).at(-1),
    'the URL is signed with sha256: --algorithm, or Algorithm of the virtual host, differs',
  );
});

test('a check of a signed URL says what it did not check', (t) => {
  t.is(
    check(signed('--ip', '10.0.0.0/8')).lines.at(-1),
    'not checked: the policy limits the address; --ip ADDRESS checks one',
  );
  t.true(check(signed('--real-ip', '10.0.0.0/8'), ['--real-ip', '10.1.1.1']).isAccepted);
  t.regex(
    check(URL.replace('master.m3u8', 'seg_1.m4s')).lines.at(-1) ?? '',
    /only the URL of the master playlist is signed.* in OriginMode there are no sessions/,
  );
});
