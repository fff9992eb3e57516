import type { Names } from '../../access/publisher-grant.ts';
import type { StandbyConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { InputStream } from '../../core/input-stream.ts';
import type { Registry } from '../../core/registry.ts';
import type { Source } from '../../core/source.ts';
import type { StreamNames } from '../../directory/stream-names.ts';
import { KilnError, kilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import type { Task } from '../../tasks/kind.ts';
import { reasonOf } from '../../tasks/store-failure.ts';
import { TaskExistsError, type Tasks } from '../../tasks/tasks.ts';
import { SYSTEM_CLOCK } from '../scheduled/clock.ts';
import { FIRST } from './former.ts';
import { standbyConfig, standbyTask, type StandbySpec } from './kind.ts';
import type { Slates } from './slates.ts';
import { StandingStream } from './standing-stream.ts';

/** Most streams of this node that show a slate instead of their publishers; further ones end with those. */
const MAX_STANDING = 1000;

export interface StandbysOptions {
  readonly registry: Registry;
  readonly names: Pick<StreamNames, 'publish'>;
  readonly slates: Slates;
  readonly tasks: Pick<Tasks, 'definitions' | 'define' | 'remove'>;
  /** Whether other nodes may go on with the streams of this one. */
  readonly isClustered: boolean;
  readonly log: Logger;
}

/** Streams that outlive their publishers: those of applications with Standby, and those with a standby task. */
export class Standbys implements Names {
  readonly #options: StandbysOptions;
  readonly #streams = new Map<InputStream, StandingStream>();
  readonly #onDraining = (draining: boolean): void => {
    if (draining) this.#endAll('the node drains');
  };
  #closed = false;

  constructor(options: StandbysOptions) {
    this.#options = options;
    options.registry.on('draining', this.#onDraining);
  }

  /** Gives a publisher the name of a stream, as StreamNames.publish() does. */
  async publish(
    application: Application,
    name: string,
    source: Source,
    options: Parameters<Names['publish']>[3],
  ): Promise<InputStream> {
    const { names } = this.#options;
    // the provider makes the output stream itself, from the stream that it gets
    if (options.isPassthrough === true) return names.publish(application, name, source, options);
    const present = this.#find(application, name);
    if (present !== undefined) {
      application.check(name, source, options);
      return present.take(source);
    }
    const config = this.#configOf(application, name);
    if (config === undefined) return names.publish(application, name, source, options);
    const stream = await names.publish(application, name, source, { ...options, hasStandby: true });
    const standing = this.#open(application, stream, config);
    if (this.#options.isClustered && !stream.closed) void this.#define(application, standing);
    return standing.take(source);
  }

  /** Shows a slate under the name of a task, for as long as no publisher has it. @returns undefined when the name is in use */
  async stand({ application, name, signal }: Task, config: StandbyConfig): Promise<StandingStream | undefined> {
    const options = { replace: false, maxConnections: 0, silence: 'stop', isSlate: true, hasStandby: true } as const;
    try {
      const stream = await this.#options.names.publish(application, name.id, FIRST.source, { ...options, signal });
      const standing = this.#open(application, stream, config);
      if (!stream.closed) standing.stand();
      return standing;
    } catch (error) {
      // in use, or not to be had at present
      if (error instanceof KilnError) return undefined;
      throw error;
    }
  }

  /**
   * Defines that a stream outlives its publishers from now on; a node shows its slate if there is none.
   * @throws standbyExists, errors of the store
   */
  async start(application: Application, name: string, spec: StandbySpec): Promise<void> {
    const { tasks } = this.#options;
    const task = standbyTask(application, name);
    // one that the application asked for has no settings of its own
    if (tasks.definitions.get(task)?.persistent === false) await tasks.remove(task);
    try {
      await tasks.define(task, spec, { persistent: true });
      this.#find(application, name)?.resume();
    } catch (error) {
      if (error instanceof TaskExistsError) throw kilnError('standbyExists', name);
      throw error;
    }
  }

  /** Ends the slate of a stream, and has it end with its publisher. @throws standbyNotFound, errors of the store */
  async stop(application: Application, name: string): Promise<void> {
    const standing = this.#find(application, name);
    const isDefined = await this.#options.tasks.remove(standbyTask(application, name));
    if (!isDefined && standing === undefined) throw kilnError('standbyNotFound', name);
    standing?.stop();
  }

  /** From now on streams end with their publishers. */
  close(): void {
    this.#closed = true;
    this.#options.registry.off('draining', this.#onDraining);
    this.#endAll('the server is stopping');
  }

  #find(application: Application, name: string): StandingStream | undefined {
    const listed = application.stream(name);
    return listed && this.#streams.get(listed);
  }

  #configOf(application: Application, name: string): StandbyConfig | undefined {
    const { standby } = application.config;
    const definition = this.#options.tasks.definitions.get(standbyTask(application, name));
    const defined = definition && standbyConfig(definition.spec, application.config);
    return defined ?? (standby?.enable === true ? standby : undefined);
  }

  #open(application: Application, stream: InputStream, config: StandbyConfig): StandingStream {
    const { registry, slates, log } = this.#options;
    const standing = new StandingStream({
      stream,
      config,
      clock: SYSTEM_CLOCK,
      prepare: (wish) => slates.prepare(wish),
      isOff: () =>
        this.#closed ||
        registry.draining ||
        this.#configOf(application, stream.name) === undefined ||
        (!standing.standsBy && this.#standing >= MAX_STANDING),
      onOver: () => void this.#remove(application, stream),
      log: log.child({ stream: `${application.internalName}/${stream.name}` }),
    });
    if (!stream.closed) {
      this.#streams.set(stream, standing);
      stream.once('close', () => this.#streams.delete(stream));
    }
    return standing;
  }

  /** Has another node go on when this one dies. */
  async #define(application: Application, standing: StandingStream): Promise<void> {
    const { tasks, log } = this.#options;
    const { name } = standing.stream;
    const task = standbyTask(application, name);
    try {
      await tasks.define(task, {}, { persistent: false });
      if (standing.isOver) await tasks.remove(task);
    } catch (error) {
      if (!(error instanceof TaskExistsError))
        log.warn({ stream: name, ...reasonOf(error) }, 'no other node will show the slate of a stream');
    }
  }

  async #remove(application: Application, { name, tracks }: InputStream): Promise<void> {
    const { tasks, log } = this.#options;
    const task = standbyTask(application, name);
    const definition = tasks.definitions.get(task);
    // a publisher that sent nothing ends no slate that was asked for
    if (definition === undefined || (definition.persistent && tracks.length === 0)) return;
    try {
      await tasks.remove(task);
    } catch (error) {
      log.warn(
        { stream: name, ...reasonOf(error) },
        'the standby task of a stream that has ended could not be deleted',
      );
    }
  }

  #endAll(reason: string): void {
    for (const standing of [...this.#streams.values()]) standing.endStandby(reason);
  }

  get #standing(): number {
    let count = 0;
    for (const { standsBy } of this.#streams.values()) if (standsBy) count++;
    return count;
  }
}
