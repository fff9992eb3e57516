import { splitKey, type ConfigEntry, type ConfigStore } from '#cluster';
import type { CertificateStore } from '../tls/certificates.ts';
import { CertificateError } from '../config/certificate.ts';
import { pendingInApplication, pendingInVhost } from '../config/pending.ts';
import type { Registry } from '../core/registry.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import { isBesideVhosts } from '../tasks/definition.ts';
import { readApplication, readVhost, withDefaults } from './documents.ts';

export interface StoredConfigOptions {
  readonly registry: Registry;
  readonly store: ConfigStore;
  readonly certificates: CertificateStore;
  readonly log: Logger;
}

const ignore = (): void => {};

const BY_DEFAULT: ReadonlySet<string> = new Set(
  pendingInApplication(readApplication(withDefaults({ name: 'any', type: 'live' }), ignore)),
);

/**
 * Creates the stored objects in the registry, and follows changes of them by any node. A virtual host is stored at its name,
 * without its applications except for the template; each application below it. An object that cannot be created here is logged,
 * and stays stored. A virtual host without its certificate is created all the same: a reload may find the certificate.
 */
export class StoredConfig {
  readonly #registry: Registry;
  readonly #store: ConfigStore;
  readonly #certificates: CertificateStore;
  readonly #log: Logger;
  /** Revision of each object in the registry, by key. */
  readonly #made = new Map<string, number>();
  readonly #unlisten: () => void;
  #last: Promise<void> = Promise.resolve();

  constructor({ registry, store, certificates, log }: StoredConfigOptions) {
    this.#registry = registry;
    this.#store = store;
    this.#certificates = certificates;
    this.#log = log;
    this.#unlisten = store.listen((keys) => this.#inTurn(keys));
  }

  restore(): Promise<void> {
    return this.#inTurn([...this.#store.entries().keys()]);
  }

  close(): void {
    this.#unlisten();
  }

  #inTurn(keys: readonly string[]): Promise<void> {
    const turn = this.#last.then(() => this.#apply(keys));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Applies changes, virtual hosts before their applications. Objects are created from the present entries. */
  async #apply(keys: readonly string[]): Promise<void> {
    const changed = keys.map((key) => ({ key, names: splitKey(key) })).filter(({ names }) => !isBesideVhosts(names));
    for (const { key, names } of changed.sort((a, b) => a.names.length - b.names.length)) {
      const entry = this.#store.entries().get(key);
      if (entry !== undefined && this.#made.get(key) === entry.revision) continue;
      const [vhost = '', application] = names;
      try {
        if (application === undefined) await this.#applyVhost(key, vhost, entry);
        else this.#applyApplication(key, vhost, application, entry);
      } catch (error) {
        if (!(error instanceof KilnError || error instanceof CertificateError)) throw error;
        this.#log.error({ names }, `a stored configuration object cannot be used: ${error.message}`);
      }
    }
  }

  async #applyVhost(key: string, name: string, entry: ConfigEntry | undefined): Promise<void> {
    if (this.#made.has(key)) {
      for (const other of this.#made.keys()) if (other === key || other.startsWith(`${key}/`)) this.#made.delete(other);
      this.#registry.deleteVhost(name, 'the virtual host was deleted');
      this.#certificates.remove(name);
    }
    if (entry === undefined) return;
    const config = readVhost(entry.value, ignore);
    this.#registry.createVhost(config, false, entry.revision);
    this.#made.set(key, entry.revision);
    this.#tellPending({ vhost: name }, pendingInVhost(config));
    await this.#certificates.load(config);
  }

  #applyApplication(key: string, vhost: string, name: string, entry: ConfigEntry | undefined): void {
    const known = this.#made.has(key);
    if (entry === undefined) {
      this.#made.delete(key);
      const application = this.#registry.vhosts.get(vhost)?.applications.get(name);
      // one that was created on demand is not stored, and deleted all the same
      if (known || application?.dynamic) application?.close('the application was deleted');
      return;
    }
    const config = readApplication(entry.value, ignore);
    const parent = this.#registry.vhost(vhost);
    if (parent.isStatic) throw kilnError('vhostReadOnly', vhost);
    // an unknown one was created on demand from the template
    parent.applications.get(name)?.close(`the application was ${known ? 'changed' : 'created by the management API'}`);
    parent.createApplication(config, false, entry.revision);
    this.#made.set(key, entry.revision);
    this.#tellPending({ application: name }, pendingInApplication(config, parent.config));
  }

  /** Logs settings without effect, unless every application that is created without providers and publishers has them. */
  #tellPending(what: object, pending: readonly string[]): void {
    const asked = pending.filter((line) => !BY_DEFAULT.has(line));
    if (asked.length === 0) return;
    this.#log.warn(
      { ...what, pending: asked },
      'a configuration object of the management API has settings that are not available: they have no effect',
    );
  }
}
