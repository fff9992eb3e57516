import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { TlsConfig } from './model.ts';

type FileKey = keyof TlsConfig | 'caCertPath';

/** A certificate that cannot be used. `key` names the setting at fault; `message` has its value and the reason. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError';
  readonly key: FileKey;

  constructor(key: FileKey, message: string) {
    super(message);
    this.key = key;
  }
}

export interface Certificate {
  readonly leaf: X509Certificate;
  readonly context: SecureContext;
  /** The leaf, followed by its chain. */
  readonly chain: readonly X509Certificate[];
  /** PEM: the leaf followed by its chain; the private key. */
  readonly cert: string;
  readonly key: string;
}

const MAX_BYTES = 256 * 1024;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Reads the files of a TLS element. CertPath may hold a chain itself; certificates of ChainCertPath follow it, without
 * duplicates.
 * @param folder base of relative paths
 * @throws CertificateError
 */
export async function loadCertificate(tls: TlsConfig, folder: string): Promise<Certificate> {
  const { certPath, keyPath, chainCertPath } = tls;
  const text = (key: FileKey, path: string): Promise<string> => readText(key, path, folder);
  const own = readCertificates('certPath', certPath, await text('certPath', certPath));
  const key = await text('keyPath', keyPath);
  const chain =
    chainCertPath === undefined
      ? []
      : readCertificates('chainCertPath', chainCertPath, await text('chainCertPath', chainCertPath));
  const [leaf] = own as [X509Certificate];
  if (!leaf.checkPrivateKey(readKey(keyPath, key))) {
    throw new CertificateError('keyPath', `"${keyPath}" is not the key of the certificate in "${certPath}"`);
  }
  const present = new Set(own.map(({ fingerprint256 }) => fingerprint256));
  const all = [...own, ...chain.filter(({ fingerprint256 }) => !present.has(fingerprint256))];
  const cert = all.map((certificate) => certificate.toString()).join('');
  try {
    return { leaf, chain: all, cert, key, context: createSecureContext({ cert, key, honorCipherOrder: true }) };
  } catch (error) {
    throw new CertificateError('certPath', `"${certPath}" cannot be used: ${(error as Error).message}`);
  }
}

/** Reads the certificates of trusted authorities. @param folder base of a relative path @throws CertificateError */
export async function loadAuthorities(path: string, folder: string): Promise<X509Certificate[]> {
  return readCertificates('caCertPath', path, await readText('caCertPath', path, folder));
}

/** Reason by which clients reject a certificate now: its dates. Undefined while it is valid. */
export function untimely({ leaf: { validFromDate, validToDate } }: Certificate, now: Date): string | undefined {
  if (now > validToDate) return `expired at ${validToDate.toISOString()}`;
  if (now < validFromDate) return `is not valid before ${validFromDate.toISOString()}`;
  return undefined;
}

/** Never blocks, although the path may name a pipe or a device. */
async function readText(key: FileKey, path: string, folder: string): Promise<string> {
  try {
    const file = await open(resolve(folder, path), constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const status = await file.stat();
      if (!status.isFile()) throw new CertificateError(key, `"${path}" is not a file`);
      if (status.size > MAX_BYTES) throw new CertificateError(key, `"${path}" is longer than ${MAX_BYTES} bytes`);
      return await file.readFile('latin1');
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof CertificateError) throw error;
    throw new CertificateError(key, `"${path}" cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** @throws CertificateError also when there is no certificate */
function readCertificates(key: FileKey, path: string, text: string): X509Certificate[] {
  const found = text.match(PEM_CERTIFICATE);
  if (found === null) throw new CertificateError(key, `"${path}" holds no certificate in PEM form`);
  try {
    return found.map((pem) => new X509Certificate(pem));
  } catch {
    throw new CertificateError(key, `"${path}" holds a certificate that cannot be read`);
  }
}

function readKey(path: string, text: string): KeyObject {
  try {
    return createPrivateKey(text);
  } catch {
    const what = /^(-----BEGIN|Proc-Type:).*ENCRYPTED/m.test(text)
      ? 'an encrypted private key: it must have no passphrase'
      : 'no private key in PEM form';
    throw new CertificateError('keyPath', `"${path}" holds ${what}`);
  }
}
