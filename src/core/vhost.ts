import type { ApplicationConfig, VirtualHostConfig } from '../config/model.ts';
import { fromTemplate } from '../config/template.ts';
import { kilnError } from '../errors.ts';
import { Application } from './application.ts';
import { Counters } from './counters.ts';
import { nameObjection } from './names.ts';
import type { Registry } from './registry.ts';
import { hostMatcher } from '../lib/wildcard.ts';

/** The name under which a virtual host keeps the template of applications made on demand. */
export const TEMPLATE = '*';
/** Limit of the applications that unknown clients can create in a virtual host by requests. */
const MAX_ON_DEMAND = 1000;

/** Applications behind a set of host names. */
export class VirtualHost {
  readonly registry: Registry;
  readonly config: VirtualHostConfig;
  /** From Server.xml: read-only for the management API, with everything under it. */
  readonly isStatic: boolean;
  /** Revision of its stored configuration, the same on all nodes; 0 for one that is not stored. */
  readonly revision: number;
  readonly counters: Counters;
  readonly template: ApplicationConfig | undefined;
  /** True when the `Host` of a request or the host of a URL is one of this virtual host's names. */
  readonly answersTo: (hostName: string) => boolean;
  readonly #applications = new Map<string, Application>();
  #closed = false;

  constructor(registry: Registry, config: VirtualHostConfig, isStatic: boolean, revision = 0) {
    this.registry = registry;
    this.config = config;
    this.isStatic = isStatic;
    this.revision = revision;
    this.counters = new Counters(registry.counters);
    this.answersTo = hostMatcher(config.host.names);
    this.template = config.applications.find(({ name }) => name === TEMPLATE);
    for (const application of config.applications) {
      if (application.name !== TEMPLATE) this.createApplication(application);
    }
  }

  get name(): string {
    return this.config.name;
  }

  get applications(): ReadonlyMap<string, Application> {
    return this.#applications;
  }

  /** @throws applicationNotFound */
  application(name: string): Application {
    const application = this.#applications.get(name);
    if (application === undefined) throw kilnError('applicationNotFound', this.name, name);
    return application;
  }

  /** The application of a stream that viewers ask for: made of the template when there is none, but an origin has the stream. */
  async viewed(app: string, stream: string): Promise<Application | undefined> {
    const present = this.#applications.get(app);
    return present ?? (this.template === undefined ? undefined : await this.registry.demand(this, app, stream));
  }

  /** @throws applicationExists, vhostNotFound (the virtual host is closed) */
  createApplication(config: ApplicationConfig, dynamic = false, revision = 0): Application {
    if (this.#closed) throw kilnError('vhostNotFound', this.name);
    if (this.#applications.has(config.name)) throw kilnError('applicationExists', this.name, config.name);
    const application = new Application(this, config, dynamic, revision);
    this.#applications.set(config.name, application);
    application.once('close', () => {
      if (this.#applications.get(config.name) === application) this.#applications.delete(config.name);
    });
    return application;
  }

  /**
   * The application that a publisher or a pull asks for; made of the template when there is none.
   * @throws applicationNotFound, tooManyApplications
   */
  demandApplication(name: string): Application {
    const present = this.#applications.get(name);
    if (present !== undefined) return present;
    const template = this.demandConfig(name);
    this.#makeRoom();
    return this.createApplication(fromTemplate(template, name), true);
  }

  /** Removes an unused application that was made on demand, if there are too many. */
  #makeRoom(): void {
    const onDemand = [...this.#applications.values()].filter(({ dynamic }) => dynamic);
    if (onDemand.length < MAX_ON_DEMAND) return;
    const idle = onDemand.find(({ inUse }) => !inUse);
    if (idle === undefined) throw kilnError('tooManyApplications', MAX_ON_DEMAND);
    idle.close('it was closed to make room for another application');
  }

  /**
   * The configuration of what `demandApplication` would answer; makes nothing.
   * @throws applicationNotFound
   */
  demandConfig(name: string): ApplicationConfig {
    const config = this.configOf(name);
    if (config === undefined) throw kilnError('applicationNotFound', this.name, name);
    return config;
  }

  /** Configuration as of `demandConfig`; undefined where there is no such application and none would be made. */
  configOf(name: string): ApplicationConfig | undefined {
    const template = nameObjection(name) === undefined ? this.template : undefined;
    return this.#applications.get(name)?.config ?? template;
  }

  /**
   * Closes every application. Idempotent.
   * @param how as of Application.close
   */
  close(reason: string, how?: { readonly continued: boolean }): void {
    this.#closed = true;
    for (const application of [...this.#applications.values()]) application.close(reason, how);
  }
}
