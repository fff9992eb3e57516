import { ConflictError, joinKey, splitKey, StorageError, type Change, type ConfigStore, type Json } from '#cluster';
import type { CertificateStore } from '../access/certificates.ts';
import { CertificateError } from '../config/certificate.ts';
import type { ApplicationConfig, OutputProfileConfig, VirtualHostConfig } from '../config/model.ts';
import { pendingInApplication, pendingInVhost } from '../config/pending.ts';
import type { Application } from '../core/application.ts';
import type { Registry } from '../core/registry.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { KilnError, kilnError } from '../errors.ts';
import type { Logger } from '../log.ts';
import {
  documentOf, isDocument, patched, readApplication, readProfile, readVhost, TEMPLATE, withDefaults, withProfiles, type Document,
} from './documents.ts';

export interface DynamicConfigOptions {
  readonly registry: Registry;
  readonly store: ConfigStore;
  /** Holds the certificates of virtual hosts while they are there. */
  readonly certificates: CertificateStore;
  readonly log: Logger;
}

const BY_DEFAULT: ReadonlySet<string> = new Set(
  pendingInApplication(readApplication(withDefaults({ name: 'any', type: 'live' }), () => {})),
);

/** What one item of a batch came to. */
export type Outcome<T> = { readonly made: T } | { readonly error: KilnError };

/**
 * Virtual hosts that were created through the management API, with their applications and output profiles.
 * Every change is in the store before it is in the registry. What a call brings is read, by the function it hands in,
 * only when its target exists and may be changed.
 * A virtual host is stored at its name, without its applications but for the template; each application below it.
 */
export class DynamicConfig {
  readonly #registry: Registry;
  readonly #store: ConfigStore;
  readonly #certificates: CertificateStore;
  readonly #log: Logger;
  readonly #ignore = (ignored: readonly string[]): void =>
    this.#log.warn({ ignored }, 'a configuration object of the management API has what has no effect');
  /** Changes go one after the other, each on what the one before left. */
  #last: Promise<unknown> = Promise.resolve();

  constructor({ registry, store, certificates, log }: DynamicConfigOptions) {
    this.#registry = registry;
    this.#store = store;
    this.#certificates = certificates;
    this.#log = log.child({ module: 'management' });
  }

  /**
   * Makes what is stored. What cannot be made any more is told of, and stays stored. A virtual host without its
   * certificate is made all the same: a reload may find it.
   */
  async restore(): Promise<void> {
    const keys = [...this.#store.entries()].map(([key, { value }]) => ({ names: splitKey(key), value }));
    for (const { names, value } of keys.sort((a, b) => a.names.length - b.names.length)) {
      const [vhost = '', application] = names;
      try {
        if (application === undefined) {
          await this.#certificates.load(this.#registry.createVhost(this.#readVhost(value), false).config);
        } else {
          this.#writable(vhost).createApplication(this.#readApplication(value));
        }
      } catch (error) {
        if (!(error instanceof KilnError || error instanceof CertificateError)) throw error;
        this.#log.error({ names }, `stored configuration cannot be used: ${error.message}`);
      }
    }
  }

  /**
   * Creates virtual hosts with their applications, each for itself.
   * @throws valueMissing, before anything is created, when an item lacks a required value
   */
  async createVhosts(items: readonly unknown[]): Promise<Outcome<VirtualHost>[]> {
    const readings = items.map((item) => attempt(() => this.#readVhost(item)));
    for (const reading of readings) if ('error' in reading && reading.error.code === 'valueMissing') throw reading.error;
    const outcomes: Outcome<VirtualHost>[] = [];
    for (const reading of readings) {
      outcomes.push('error' in reading ? reading : await attemptAsync(() => this.#createVhost(reading.made)));
    }
    return outcomes;
  }

  /** @throws vhostNotFound, vhostReadOnly, storageFailed */
  deleteVhost(name: string): Promise<void> {
    return this.#inTurn(async () => {
      this.#writable(name);
      const key = joinKey(name);
      await this.#write([{ key, seen: this.#revision(key) }]);
      this.#registry.deleteVhost(name, 'the virtual host was deleted');
      this.#certificates.remove(name);
    });
  }

  /**
   * Creates applications, with the defaults of facts/01-rest-api.md section 4 where nothing is given.
   * @throws vhostNotFound, vhostReadOnly, and before anything is created valueMissing, configInvalid, templateName
   */
  async createApplications(vhost: string, read: () => readonly unknown[]): Promise<Outcome<Application>[]> {
    this.#writable(vhost);
    const items = read();
    if (items.some((item) => isDocument(item) && item.name === TEMPLATE)) throw kilnError('templateName');
    const configs = items.map((item) => this.#readApplication(isDocument(item) ? withDefaults(item) : item));
    const outcomes: Outcome<Application>[] = [];
    for (const config of configs) outcomes.push(await attemptAsync(() => this.#createApplication(vhost, config)));
    return outcomes;
  }

  /**
   * Merges a change into an application and restarts it.
   * @throws vhostNotFound, applicationNotFound, vhostReadOnly, unchangeable, valueMissing, configInvalid, storageFailed
   */
  patchApplication(vhost: string, name: string, read: () => Document): Promise<Application> {
    return this.#inTurn(() => {
      const { config } = this.#writable(vhost).application(name);
      return this.#replace(vhost, this.#readApplication(patched(documentOf(config), read())));
    });
  }

  /** @throws vhostNotFound, applicationNotFound, vhostReadOnly, storageFailed */
  deleteApplication(vhost: string, name: string): Promise<void> {
    return this.#inTurn(async () => {
      const application = this.#writable(vhost).application(name);
      const key = joinKey(vhost, name);
      if (!application.dynamic) await this.#write([{ key, seen: this.#revision(key) }]);
      application.close('the application was deleted');
    });
  }

  /**
   * Adds output profiles and restarts the application once, if any could be added.
   * @throws vhostNotFound, applicationNotFound, vhostReadOnly, and before anything is added valueMissing, configInvalid
   */
  createProfiles(vhost: string, name: string, read: () => readonly unknown[]): Promise<Outcome<OutputProfileConfig>[]> {
    return this.#inTurn(async () => {
      const { config } = this.#writable(vhost).application(name);
      const profiles = read().map((profile) => readProfile(profile, this.#ignore));
      const all = [...config.outputProfiles.outputProfile];
      const outcomes = profiles.map((profile): Outcome<OutputProfileConfig> => {
        if (all.some((present) => present.name === profile.name)) return { error: kilnError('profileExists', profile.name) };
        all.push(profile);
        return { made: profile };
      });
      if (outcomes.some((outcome) => 'made' in outcome)) await this.#setProfiles(vhost, config, all);
      return outcomes;
    });
  }

  /**
   * Replaces an output profile, which keeps its name, and restarts the application.
   * @throws vhostNotFound, applicationNotFound, profileNotFound, vhostReadOnly, unchangeable, valueMissing,
   * configInvalid, storageFailed
   */
  replaceProfile(vhost: string, name: string, profile: string, read: () => Document): Promise<OutputProfileConfig> {
    return this.#inTurn(async () => {
      const { config } = this.#writable(vhost).application(name);
      const profiles = config.outputProfiles.outputProfile;
      if (!profiles.some((present) => present.name === profile)) throw profileNotFound(vhost, name, profile);
      const document = read();
      if (Object.hasOwn(document, 'name')) throw kilnError('unchangeable', 'name');
      const replacement = readProfile({ ...document, name: profile }, this.#ignore);
      await this.#setProfiles(vhost, config, profiles.map((present) => (present.name === profile ? replacement : present)));
      return replacement;
    });
  }

  /** @throws vhostNotFound, applicationNotFound, profileNotFound, vhostReadOnly, storageFailed */
  deleteProfile(vhost: string, name: string, profile: string): Promise<void> {
    return this.#inTurn(async () => {
      const { config } = this.#writable(vhost).application(name);
      const profiles = config.outputProfiles.outputProfile;
      const left = profiles.filter((present) => present.name !== profile);
      if (left.length === profiles.length) throw profileNotFound(vhost, name, profile);
      await this.#setProfiles(vhost, config, left);
    });
  }

  #readVhost(json: unknown): VirtualHostConfig {
    const config = readVhost(json, this.#ignore);
    this.#tellPending({ vhost: config.name }, pendingInVhost(config));
    return config;
  }

  #readApplication(json: unknown): ApplicationConfig {
    const config = readApplication(json, this.#ignore);
    this.#tellPending({ application: config.name }, pendingInApplication(config));
    return config;
  }

  /** What every application has that is created without providers and publishers is not worth a word. */
  #tellPending(what: object, pending: readonly string[]): void {
    const asked = pending.filter((line) => !BY_DEFAULT.has(line));
    if (asked.length === 0) return;
    this.#log.warn({ ...what, pending: asked }, 'a configuration object of the management API asks for what is not there');
  }

  #createVhost(config: VirtualHostConfig): Promise<VirtualHost> {
    return this.#inTurn(async () => {
      if (this.#registry.vhosts.has(config.name)) throw kilnError('vhostExists', config.name);
      const { applications, ...vhost } = documentOf(config);
      await this.#loadCertificate(config);
      const documents = (applications ?? []) as Document[];
      const template = documents.filter(({ name }) => name === TEMPLATE);
      const stored = { ...vhost, ...(template.length > 0 && { applications: template }) };
      const entries = [
        [joinKey(config.name), stored],
        ...config.applications
          .filter(({ name }) => name !== TEMPLATE)
          .map((application): [string, Document] => [joinKey(config.name, application.name), documentOf(application)]),
      ] satisfies [string, Document][];
      try {
        await this.#create('vhostExists', entries, config.name);
        return this.#registry.createVhost(config, false);
      } catch (error) {
        this.#certificates.remove(config.name);
        throw error;
      }
    });
  }

  /** @throws configInvalid */
  async #loadCertificate(config: VirtualHostConfig): Promise<void> {
    try {
      await this.#certificates.load(config);
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      throw kilnError('configInvalid', `host.tls.${error.key}: ${error.message}`);
    }
  }

  #createApplication(vhost: string, config: ApplicationConfig): Promise<Application> {
    return this.#inTurn(async () => {
      const parent = this.#writable(vhost);
      if (parent.applications.has(config.name)) throw kilnError('applicationExists', vhost, config.name);
      const key = joinKey(vhost, config.name);
      await this.#create('applicationExists', [[key, documentOf(config)]], vhost, config.name);
      // a publisher may have demanded it of the template in the meantime
      parent.applications.get(config.name)?.close('the application was created by the management API');
      return parent.createApplication(config);
    });
  }

  /** Stores entries that must be new. */
  async #create(
    exists: 'vhostExists' | 'applicationExists',
    entries: readonly (readonly [key: string, document: Document])[],
    ...names: [string, string?]
  ): Promise<void> {
    try {
      await this.#write(entries.map(([key, document]): Change => ({ key, value: document as Json, seen: 0 })));
    } catch (error) {
      if (error instanceof ConflictError) throw kilnError(exists, ...(names as [string, string]));
      throw error;
    }
  }

  /** @throws storageFailed, ConflictError */
  async #write(changes: readonly Change[]): Promise<void> {
    try {
      await this.#store.write(changes);
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      this.#log.error({ err: error }, 'a change by the management API could not be stored');
      throw kilnError('storageFailed');
    }
  }

  #setProfiles(vhost: string, config: ApplicationConfig, profiles: readonly OutputProfileConfig[]): Promise<Application> {
    return this.#replace(vhost, this.#readApplication(withProfiles(config, profiles.map(documentOf))));
  }

  /** Stores an application's new configuration and restarts it with that. One made on demand is not stored. */
  async #replace(vhost: string, config: ApplicationConfig): Promise<Application> {
    const parent = this.#writable(vhost);
    const present = parent.application(config.name);
    if (!present.dynamic) {
      const key = joinKey(vhost, config.name);
      await this.#write([{ key, value: documentOf(config) as Json, seen: this.#revision(key) }]);
    }
    present.close('the application was changed');
    return parent.createApplication(config, present.dynamic);
  }

  #revision(key: string): number {
    return this.#store.entries().get(key)?.revision ?? 0;
  }

  /** @throws vhostNotFound, vhostReadOnly */
  #writable(name: string): VirtualHost {
    const vhost = this.#registry.vhost(name);
    if (vhost.isStatic) throw kilnError('vhostReadOnly', name);
    return vhost;
  }

  #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(change);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
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
