import { X509Certificate } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import test from 'ava';
import { CertificateError, loadCertificate, untimely } from '../../../src/config/certificate.ts';
import type { TlsConfig } from '../../../src/config/model.ts';
import { CertificateFolder, issue } from '../../support/network/x509.ts';

const YEAR_MS = 365 * 86_400_000;

const blocks = (text: string): X509Certificate[] =>
  (text.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []).map((block) => new X509Certificate(block));

test('a certificate, its key and its chain become one, each certificate once', async (t) => {
  const folder = new CertificateFolder(t);
  const root = issue('root', { authority: true });
  const middle = issue('middle', { issuer: root, authority: true });
  const leaf = issue('a.example', { issuer: middle });
  const files = folder.write('leaf', leaf);
  writeFileSync(join(folder.path, 'chain.pem'), `some words\n${middle.cert}${root.cert}`);
  writeFileSync(join(folder.path, 'full.pem'), `${leaf.cert}${middle.cert}`);
  const chainCertPath = join(folder.path, 'chain.pem');
  const subjects = async (tls: TlsConfig) =>
    blocks((await loadCertificate(tls, '/')).cert).map(({ subject }) => subject);
  t.deepEqual(await subjects(files), ['CN=a.example']);
  t.deepEqual(await subjects({ ...files, chainCertPath }), ['CN=a.example', 'CN=middle', 'CN=root']);
  const full = { ...files, certPath: join(folder.path, 'full.pem'), chainCertPath };
  t.deepEqual(await subjects(full), ['CN=a.example', 'CN=middle', 'CN=root']);
});

test('relative paths start from the folder', async (t) => {
  const folder = new CertificateFolder(t);
  folder.write('own', issue('a.example'));
  const { leaf } = await loadCertificate({ certPath: 'own.crt', keyPath: './own.key' }, folder.path);
  t.is(leaf.subject, 'CN=a.example');
});

test('dates that clients reject are reported', async (t) => {
  const folder = new CertificateFolder(t);
  const now = new Date();
  const load = (from: number, until: number) =>
    loadCertificate(
      folder.write('dated', issue('a', { from: new Date(+now + from), until: new Date(+now + until) })),
      '/',
    );
  t.is(untimely(await load(-YEAR_MS, YEAR_MS), now), undefined);
  t.regex(untimely(await load(-YEAR_MS, -10_000), now) ?? '', /^expired at \d{4}-/);
  t.regex(untimely(await load(10_000, YEAR_MS), now) ?? '', /^is not valid before \d{4}-/);
});

test('a certificate that cannot be used is rejected with the setting, the file and the reason', async (t) => {
  const folder = new CertificateFolder(t);
  const good = folder.write('good', issue('good'));
  const other = folder.write('other', issue('other'));
  const at = (name: string, content?: string): string => {
    if (content !== undefined) writeFileSync(join(folder.path, name), content);
    return join(folder.path, name);
  };
  mkdirSync(at('folder'));
  execFileSync('mkfifo', [at('pipe')]);
  const encrypted = issue('e').privateKey.export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'p',
  });
  const bytes = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  const cases: [key: keyof TlsConfig, path: string, message: RegExp][] = [
    ['certPath', at('missing'), /^"[^"]+\/missing" cannot be read: ENOENT$/],
    ['keyPath', at('missing'), /cannot be read: ENOENT$/],
    ['chainCertPath', at('missing'), /cannot be read: ENOENT$/],
    ['certPath', at('folder'), /is not a file$/],
    ['keyPath', at('pipe'), /is not a file$/],
    ['certPath', '/dev/zero', /^"\/dev\/zero" is not a file$/],
    ['certPath', at('long', 'x'.repeat(300_000)), /is longer than 262144 bytes$/],
    ['certPath', at('empty', ''), /holds no certificate in PEM form$/],
    ['certPath', good.keyPath, /holds no certificate in PEM form$/],
    ['certPath', at('broken', bytes), /holds a certificate that cannot be read$/],
    ['chainCertPath', at('broken'), /holds a certificate that cannot be read$/],
    ['keyPath', good.certPath, /holds no private key in PEM form$/],
    ['keyPath', at('encrypted', encrypted as string), /an encrypted private key: it must have no passphrase$/],
    ['keyPath', other.keyPath, /other\.key" is not the key of the certificate in "[^"]+good\.crt"$/],
    ['certPath', `${folder.path}/\0`, /cannot be read: ERR_INVALID_ARG_VALUE$/],
  ];
  for (const [key, path, message] of cases) {
    const error = await t.throwsAsync(loadCertificate({ ...good, [key]: path }, '/'), {
      instanceOf: CertificateError,
      message,
    });
    t.is(error?.key, key);
  }
});
