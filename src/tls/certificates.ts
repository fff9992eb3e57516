import type { SecureContext } from 'node:tls';
import { loadCertificate, untimely, type Certificate } from '../config/certificate.ts';
import type { TlsConfig } from '../config/model.ts';
import { wildcard } from '../lib/wildcard.ts';
import type { Logger } from '../log/log.ts';

/** Owner of a certificate: the configuration of a virtual host, or an object like it. */
export interface CertificateHost {
  readonly name: string;
  readonly host: { readonly names: readonly string[]; readonly tls?: TlsConfig };
}

interface Entry {
  readonly names: readonly string[];
  certificate: Certificate | undefined;
  /** Numbers of loads that began and ended, and of the one whose result is in use. */
  begun: number;
  ended: number;
  used: number;
}

/** Certificates of virtual hosts, chosen by the name in a TLS client's request (SNI, RFC 6066 section 3). */
export class CertificateStore {
  readonly #folder: string;
  readonly #log: Logger;
  readonly #entries = new Map<string, Entry>();
  #exact = new Map<string, SecureContext>();
  #patterns: { readonly pattern: RegExp; readonly context: SecureContext }[] = [];
  #initial: { readonly cert: string; readonly key: string } | undefined;

  /** @param folder base of relative paths of certificates */
  constructor({ folder, log }: { readonly folder: string; readonly log: Logger }) {
    this.#folder = folder;
    this.#log = log;
  }

  /**
   * Certificate of the first virtual host that has one, for clients that request no name or an unknown one. A new object after
   * every change, so that sessions of former certificates can be recognized.
   */
  get initial(): { readonly cert: string; readonly key: string } | undefined {
    return this.#initial;
  }

  /** Certificate for a host name: an exact name before a pattern, else in the order of virtual hosts. */
  select(serverName: string): SecureContext | undefined {
    const exact = this.#exact.get(serverName.toLowerCase());
    return exact ?? this.#patterns.find(({ pattern }) => pattern.test(serverName))?.context;
  }

  /**
   * Loads a virtual host's certificate, for new connections. After an error the previous one stays. Does nothing for a host
   * without TLS.
   * @throws CertificateError
   */
  async load({ name, host: { names, tls } }: CertificateHost): Promise<void> {
    if (tls === undefined) return;
    const entry = this.#entries.get(name) ?? { names, certificate: undefined, begun: 0, ended: 0, used: 0 };
    this.#entries.set(name, entry);
    const turn = ++entry.begun;
    try {
      const certificate = await loadCertificate(tls, this.#folder);
      this.#tell(name, certificate);
      // a later load may have ended first, and the virtual host may be gone
      if (turn < entry.used || this.#entries.get(name) !== entry) return;
      entry.used = turn;
      entry.certificate = certificate;
      this.#index();
    } finally {
      entry.ended++;
      const empty = entry.certificate === undefined && entry.ended === entry.begun;
      if (empty && this.#entries.get(name) === entry) this.#entries.delete(name);
    }
  }

  /** Loads a certificate without using it. @throws CertificateError */
  async check({ host: { tls } }: CertificateHost): Promise<void> {
    if (tls !== undefined) await loadCertificate(tls, this.#folder);
  }

  /** Removes a virtual host's certificate. Its connections go on. */
  remove(name: string): void {
    if (this.#entries.delete(name)) this.#index();
  }

  #tell(host: string, certificate: Certificate): void {
    const { leaf } = certificate;
    const fault = untimely(certificate, new Date());
    const bound = { host, subject: leaf.subject?.replaceAll('\n', ', '), until: leaf.validTo };
    if (fault === undefined) this.#log.info(bound, 'certificate loaded');
    else this.#log.warn(bound, `the certificate ${fault}`);
  }

  #index(): void {
    this.#exact = new Map();
    this.#patterns = [];
    this.#initial = undefined;
    for (const { names, certificate } of this.#entries.values()) {
      if (certificate === undefined) continue;
      const { context, cert, key } = certificate;
      this.#initial ??= { cert, key };
      for (const name of names) {
        if (/[*?]/.test(name)) this.#patterns.push({ pattern: wildcard(name), context });
        else if (!this.#exact.has(name.toLowerCase())) this.#exact.set(name.toLowerCase(), context);
      }
    }
  }
}
