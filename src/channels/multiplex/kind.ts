import type { Json } from '#cluster';
import type { InputStream } from '../../core/input-stream.ts';
import type { Logger } from '../../log/log.ts';
import type { PlacedKind, Standby, Task } from '../../tasks/kind.ts';
import { Departure } from '../sources/departure.ts';
import { ChannelError } from '../sources/error.ts';
import { readChannelFailure, writeChannelFailure } from '../sources/failure.ts';
import type { LiveSources } from '../sources/live-sources.ts';
import { leaveOwnStream, publishOwnName, type OwnNameOptions } from '../../tasks/own-name.ts';
import { MultiplexChannel } from './channel.ts';
import { readMultiplexSpec } from './spec.ts';

export interface MultiplexKindOptions extends OwnNameOptions {
  readonly sources: LiveSources;
  readonly log: Logger;
}

type Wanted = Pick<Task, 'application' | 'name' | 'spec'>;

/** Multiplex channels as tasks: the id is the name of the stream. */
export class MultiplexKind implements PlacedKind {
  readonly name = 'multiplex';
  readonly makesStream = true;
  readonly #options: MultiplexKindOptions;

  constructor(options: MultiplexKindOptions) {
    this.#options = options;
  }

  writeFailure(error: unknown): Json | undefined {
    return writeChannelFailure(error);
  }

  readFailure(failure: Json): ChannelError {
    return readChannelFailure(failure);
  }

  async run(task: Task): Promise<void> {
    const { channel, close } = this.#open(task, Promise.resolve(task));
    task.show(() => channel.report);
    // waiting for sources has no time limit, and counts as started
    task.started();
    await channel.run(task.signal).finally(close);
  }

  /** @throws ChannelError */
  standBy(wanted: Wanted): Standby {
    const ready = Promise.withResolvers<void>();
    const its = Promise.withResolvers<Task>();
    const stop = new AbortController();
    const turn = async (): Promise<void> => {
      ready.resolve();
      await its.promise;
    };
    const { channel, close } = this.#open(wanted, its.promise, turn);
    const over = channel.run(stop.signal).finally(close);
    over.then(() => ready.reject(new ChannelError('it has ended')), ready.reject);
    const run = async (task: Task): Promise<void> => {
      const { signal } = task;
      const onAbort = (): void => stop.abort(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
      task.show(() => channel.report);
      task.started();
      its.resolve(task);
      await over;
    };
    return { ready: ready.promise, run, close: () => stop.abort() };
  }

  /** @param its task of the run @param turn as in MultiplexChannel @throws ChannelError */
  #open({ application, name, spec: json }: Wanted, its: Promise<Task>, turn?: () => Promise<void>) {
    const spec = readMultiplexSpec(json);
    if (spec === undefined) throw new ChannelError('the definition cannot be read');
    if (application.config.providers.multiplex === undefined)
      throw new ChannelError('the Multiplex provider is off: the application has no <Multiplex/> in its Providers');
    const { sources } = this.#options;
    const log = this.#options.log.child({ module: this.name, stream: `${application.internalName}/${name.id}` });
    let signal: AbortSignal | undefined;
    let departure: Departure | undefined;
    const publish = async (): Promise<InputStream | undefined> => {
      const task = await its;
      ({ signal } = task);
      departure ??= new Departure(task);
      return await this.#publish(task, spec.bypassTranscoder);
    };
    const leave = (input: InputStream, reason: string): void => {
      if (signal?.aborted === true) leaveOwnStream(input, signal, reason);
      else input.close(reason);
    };
    const channel = new MultiplexChannel({
      application,
      name: name.id,
      spec,
      sources,
      publish,
      passes: (packet) => departure?.passes(packet) !== false,
      turn,
      leave,
      log,
    });
    return { channel, close: () => departure?.close() };
  }

  #publish({ application, persistent, name, signal }: Task, isPassthrough: boolean): Promise<InputStream | undefined> {
    const { maxConnection = 0 } = application.config.providers.multiplex ?? {};
    const options = { replace: false, maxConnections: maxConnection, isPassthrough };
    // not new: the channel exists long before it claims the name
    const task = { application, persistent, isNew: false, name, signal };
    return publishOwnName(task, { type: 'Multiplex', kind: 'multiplex' }, options, this.#options);
  }
}
