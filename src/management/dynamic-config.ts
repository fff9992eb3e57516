import { isDeepStrictEqual } from 'node:util';
import { joinKey, type Change, type Cluster, type ConfigStore, type Json } from '#cluster';
import type { CertificateStore } from '../tls/certificates.ts';
import { CertificateError } from '../config/certificate.ts';
import type { ApplicationConfig, OutputProfileConfig, VirtualHostConfig } from '../config/model.ts';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import { TEMPLATE, type VirtualHost } from '../core/vhost.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { Logger } from '../log/log.ts';
import { removals } from '../tasks/definitions.ts';
import { ConfigWriter } from './config-writer.ts';
import {
  documentOf,
  isDocument,
  patched,
  readApplication,
  readProfile,
  readVhost,
  withDefaults,
  withProfiles,
  type Document,
} from './documents.ts';
import { StoredConfig } from './stored-config.ts';

export interface DynamicConfigOptions {
  readonly registry: Registry;
  readonly cluster: Pick<Cluster, 'config' | 'withLock'>;
  readonly certificates: CertificateStore;
  readonly log: Logger;
}

export interface Patched<T> {
  readonly value: T;
  /** Whether the new configuration means something else than the old one. */
  readonly isChanged: boolean;
}

export type Outcome<T> = { readonly made: T } | { readonly error: KilnError };

/**
 * Virtual hosts that were created through the management API, on any node, with their applications and output profiles. A
 * change is in the store before it is in the registry, which follows the store: StoredConfig. The body of a call is read, by
 * the function that the call passes, only when its target exists and may be changed.
 */
export class DynamicConfig {
  readonly #registry: Registry;
  readonly #store: ConfigStore;
  readonly #writer: ConfigWriter;
  readonly #certificates: CertificateStore;
  readonly #log: Logger;
  readonly #stored: StoredConfig;
  readonly #ignore = (ignored: readonly string[]): void =>
    this.#log.warn({ ignored }, 'a configuration object of the management API has keys without effect');

  constructor({ registry, cluster, certificates, log }: DynamicConfigOptions) {
    this.#registry = registry;
    this.#store = cluster.config;
    this.#certificates = certificates;
    this.#log = log.child({ module: 'management' });
    this.#writer = new ConfigWriter(cluster, this.#log);
    this.#stored = new StoredConfig({ registry, store: cluster.config, certificates, log: this.#log });
  }

  restore(): Promise<void> {
    return this.#stored.restore();
  }

  /**
   * Resolves when the registry has every change that was answered before the call, on any node; undefined when it has.
   * @param seen as in `ConfigStore.sync`
   */
  sync(seen?: string): Promise<void> | undefined {
    return this.#store.sync(seen);
  }

  /** Whether the store is unreachable: changes of other nodes are unknown, and nothing can be changed. */
  get stale(): boolean {
    return this.#store.stale;
  }

  close(): void {
    this.#stored.close();
  }

  /**
   * Creates virtual hosts with their applications. Each item succeeds or fails by itself.
   * @throws valueMissing, before anything is created, when an item lacks a required value
   */
  async createVhosts(items: readonly unknown[]): Promise<Outcome<VirtualHost>[]> {
    const readings = items.map((item) => attempt(() => readVhost(item, this.#ignore)));
    for (const reading of readings)
      if ('error' in reading && reading.error.code === 'valueMissing') throw reading.error;
    const outcomes: Outcome<VirtualHost>[] = [];
    for (const reading of readings) {
      outcomes.push('error' in reading ? reading : await attemptAsync(() => this.#createVhost(reading.made)));
    }
    return outcomes;
  }

  /** @throws vhostNotFound, vhostReadOnly, storageFailed, clusterUnavailable */
  deleteVhost(name: string): Promise<void> {
    return this.#writer.change(name, async () => {
      this.#writable(name);
      const key = joinKey(name);
      await this.#writer.write([{ key, seen: this.#writer.revision(key) }, ...removals(this.#store, name)]);
    });
  }

  /**
   * Creates applications, with the defaults of docs/compatibility.md#rest-answers where nothing is given.
   * @throws vhostNotFound, vhostReadOnly, and before anything is created valueMissing, configInvalid, templateName
   */
  async createApplications(vhost: string, read: () => readonly unknown[]): Promise<Outcome<Application>[]> {
    this.#writable(vhost);
    const items = read();
    if (items.some((item) => isDocument(item) && item.name === TEMPLATE)) throw kilnError('templateName');
    const configs = items.map((item) => readApplication(isDocument(item) ? withDefaults(item) : item, this.#ignore));
    const outcomes: Outcome<Application>[] = [];
    for (const config of configs) outcomes.push(await attemptAsync(() => this.#createApplication(vhost, config)));
    return outcomes;
  }

  /**
   * Merges a change into an application. It restarts, unless its configuration means the same as before.
   * @throws vhostNotFound, applicationNotFound, vhostReadOnly, unchangeable, valueMissing, configInvalid, storageFailed,
   * clusterUnavailable
   */
  patchApplication(vhost: string, name: string, read: () => Document): Promise<Patched<Application>> {
    return this.#writer.change(vhost, async () => {
      const { config } = this.#writable(vhost).application(name);
      const isChanged = await this.#replace(
        vhost,
        config,
        readApplication(patched(documentOf(config), read()), this.#ignore),
      );
      return { value: this.#registry.vhost(vhost).application(name), isChanged };
    });
  }

  /** @throws vhostNotFound, applicationNotFound, vhostReadOnly, storageFailed, clusterUnavailable */
  deleteApplication(vhost: string, name: string): Promise<void> {
    return this.#writer.change(vhost, async () => {
      this.#writable(vhost).application(name);
      const key = joinKey(vhost, name);
      // one that was created on demand is not stored: every node closes it when it sees that the key is gone
      await this.#writer.write([{ key, seen: this.#writer.revision(key) }, ...removals(this.#store, vhost, name)]);
    });
  }

  /**
   * Adds output profiles and restarts the application once, if any could be added.
   * @throws vhostNotFound, applicationNotFound, vhostReadOnly, and before anything is added valueMissing, configInvalid
   */
  createProfiles(vhost: string, name: string, read: () => readonly unknown[]): Promise<Outcome<OutputProfileConfig>[]> {
    return this.#writer.change(vhost, async () => {
      const { config } = this.#writable(vhost).application(name);
      const profiles = read().map((profile) => readProfile(profile, this.#ignore));
      const all = [...config.outputProfiles.outputProfile];
      const outcomes = profiles.map((profile): Outcome<OutputProfileConfig> => {
        if (all.some((present) => present.name === profile.name))
          return { error: kilnError('profileExists', profile.name) };
        all.push(profile);
        return { made: profile };
      });
      if (outcomes.some((outcome) => 'made' in outcome)) await this.#setProfiles(vhost, config, all);
      return outcomes;
    });
  }

  /**
   * Replaces an output profile, which keeps its name. The application restarts, unless the profile means the same as before.
   * @throws vhostNotFound, applicationNotFound, profileNotFound, vhostReadOnly, unchangeable, valueMissing,
   * configInvalid, storageFailed, clusterUnavailable
   */
  replaceProfile(
    vhost: string,
    name: string,
    profile: string,
    read: () => Document,
  ): Promise<Patched<OutputProfileConfig>> {
    return this.#writer.change(vhost, async () => {
      const { config } = this.#writable(vhost).application(name);
      const profiles = config.outputProfiles.outputProfile;
      this.#profile(vhost, name, profile);
      const document = read();
      if (Object.hasOwn(document, 'name')) throw kilnError('unchangeable', 'name');
      const replacement = readProfile({ ...document, name: profile }, this.#ignore);
      const isChanged = await this.#setProfiles(
        vhost,
        config,
        profiles.map((present) => (present.name === profile ? replacement : present)),
      );
      return { value: this.#profile(vhost, name, profile), isChanged };
    });
  }

  /** @throws vhostNotFound, applicationNotFound, profileNotFound, vhostReadOnly, storageFailed, clusterUnavailable */
  deleteProfile(vhost: string, name: string, profile: string): Promise<void> {
    return this.#writer.change(vhost, async () => {
      const { config } = this.#writable(vhost).application(name);
      const profiles = config.outputProfiles.outputProfile;
      const left = profiles.filter((present) => present.name !== profile);
      if (left.length === profiles.length) throw profileNotFound(vhost, name, profile);
      await this.#setProfiles(vhost, config, left);
    });
  }

  #createVhost(config: VirtualHostConfig): Promise<VirtualHost> {
    return this.#writer.change(config.name, async () => {
      const key = joinKey(config.name);
      // objects that cannot be created on this node are stored, too
      if (this.#registry.vhosts.has(config.name) || this.#writer.revision(key) > 0)
        throw kilnError('vhostExists', config.name);
      const { applications, ...vhost } = documentOf(config);
      await this.#checkCertificate(config);
      const documents = (applications ?? []) as Document[];
      const template = documents.filter(({ name }) => name === TEMPLATE);
      const stored = { ...vhost, ...(template.length > 0 && { applications: template }) };
      await this.#writer.write([
        { key, value: stored as Json, seen: 0 },
        ...config.applications
          .filter(({ name }) => name !== TEMPLATE)
          .map((application): Change => create(config.name, application)),
      ]);
      return this.#registry.vhost(config.name);
    });
  }

  async #checkCertificate(config: VirtualHostConfig): Promise<void> {
    try {
      await this.#certificates.check(config);
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      throw kilnError('configInvalid', `host.tls.${error.key}: ${error.message}`);
    }
  }

  #createApplication(vhost: string, config: ApplicationConfig): Promise<Application> {
    return this.#writer.change(vhost, async () => {
      const made = this.#writable(vhost).applications.has(config.name);
      if (made || this.#writer.revision(joinKey(vhost, config.name)) > 0)
        throw kilnError('applicationExists', vhost, config.name);
      await this.#writer.write([create(vhost, config)], [this.#writer.expected(joinKey(vhost))]);
      return this.#registry.vhost(vhost).application(config.name);
    });
  }

  #setProfiles(vhost: string, config: ApplicationConfig, profiles: readonly OutputProfileConfig[]): Promise<boolean> {
    return this.#replace(vhost, config, readApplication(withProfiles(config, profiles.map(documentOf)), this.#ignore));
  }

  /**
   * Stores an application's new configuration, which restarts it on every node; one created on demand becomes an ordinary one.
   * A configuration that means the same with all defaults filled is not stored, so that no session is lost for it.
   * @returns whether it was stored
   */
  async #replace(vhost: string, present: ApplicationConfig, wanted: ApplicationConfig): Promise<boolean> {
    if (isDeepStrictEqual(present, wanted)) return false;
    const key = joinKey(vhost, wanted.name);
    const change = { key, value: documentOf(wanted) as Json, seen: this.#writer.revision(key) };
    await this.#writer.write([change], [this.#writer.expected(joinKey(vhost))]);
    return true;
  }

  #profile(vhost: string, name: string, profile: string): OutputProfileConfig {
    const profiles = this.#registry.vhost(vhost).application(name).config.outputProfiles.outputProfile;
    const found = profiles.find((present) => present.name === profile);
    if (found === undefined) throw profileNotFound(vhost, name, profile);
    return found;
  }

  #writable(name: string): VirtualHost {
    const vhost = this.#registry.vhost(name);
    if (vhost.isStatic) throw kilnError('vhostReadOnly', name);
    return vhost;
  }
}

/** Change that stores an application, and fails if there is one already. */
function create(vhost: string, application: ApplicationConfig): Change {
  return { key: joinKey(vhost, application.name), value: documentOf(application) as Json, seen: 0 };
}

function profileNotFound(...path: readonly string[]): KilnError {
  return kilnError('profileNotFound', path.join('/'));
}

function attempt<T>(make: () => T): Outcome<T> {
  try {
    return { made: make() };
  } catch (error) {
    if (error instanceof KilnError) return { error };
    throw error;
  }
}

async function attemptAsync<T>(make: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { made: await make() };
  } catch (error) {
    if (error instanceof KilnError) return { error };
    throw error;
  }
}
