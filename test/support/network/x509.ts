import { generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';

const OIDS = {
  commonName: '550403',
  ecdsaWithSha256: '2a8648ce3d040302',
  basicConstraints: '551d13',
  subjectAltName: '551d11',
} as const;

const DAY_MS = 86_400_000;

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: Buffer[]): Buffer => der(0x30, ...parts);
const oid = (name: keyof typeof OIDS): Buffer => der(0x06, Buffer.from(OIDS[name], 'hex'));
const time = (date: Date): Buffer => der(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]|\.\d+/g, '')}`));
const distinguishedName = (name: string): Buffer =>
  sequence(der(0x31, sequence(oid('commonName'), der(0x0c, Buffer.from(name)))));
const extension = (name: keyof typeof OIDS, value: Buffer): Buffer => sequence(oid(name), der(0x04, value));
const pem = (label: string, bytes: Buffer): string =>
  `-----BEGIN ${label}-----\n${bytes.toString('base64').replace(/.{1,64}/g, '$&\n')}-----END ${label}-----\n`;

export interface Issued {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  readonly name: string;
  readonly privateKey: KeyObject;
}

export interface IssueOptions {
  /** Who signs; itself without one. */
  readonly issuer?: Issued;
  readonly from?: Date;
  readonly until?: Date;
  readonly authority?: boolean;
}

/** A certificate (RFC 5280 section 4.1) with a new P-256 key. Its names are `name` and `127.0.0.1`. */
export function issue(name: string, options: IssueOptions = {}): Issued {
  const { issuer, from = new Date(Date.now() - DAY_MS), until = new Date(Date.now() + DAY_MS) } = options;
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid('ecdsaWithSha256'));
  const names = sequence(der(0x82, Buffer.from(name)), der(0x87, Buffer.from([127, 0, 0, 1])));
  const isAuthority = sequence(...(options.authority ? [der(0x01, Buffer.from([0xff]))] : []));
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    distinguishedName(issuer?.name ?? name),
    sequence(time(from), time(until)),
    distinguishedName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(extension('basicConstraints', isAuthority), extension('subjectAltName', names))),
  );
  const signature = sign('sha256', content, issuer?.privateKey ?? privateKey);
  return {
    name,
    privateKey,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: pem('CERTIFICATE', sequence(content, algorithm, der(0x03, Buffer.from([0]), signature))),
  };
}

/** A folder for certificates, gone after the test. */
export class CertificateFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'kiln-tls-'));

  constructor(t: Pick<ExecutionContext, 'teardown'>) {
    t.teardown(() => rmSync(this.path, { recursive: true, force: true }));
  }

  /** Writes, or overwrites, a certificate and its key as `<file>.crt` and `<file>.key`. */
  write(file: string, { cert, key }: Pick<Issued, 'cert' | 'key'>): { certPath: string; keyPath: string } {
    writeFileSync(join(this.path, `${file}.crt`), cert);
    writeFileSync(join(this.path, `${file}.key`), key);
    return { certPath: join(this.path, `${file}.crt`), keyPath: join(this.path, `${file}.key`) };
  }
}
