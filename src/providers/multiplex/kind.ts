import type { Json } from '#cluster';
import type { InputStream } from '../../core/stream.ts';
import type { Logger } from '../../log.ts';
import type { PlacedKind, Task } from '../../tasks/kind.ts';
import { ChannelError } from '../placed/error.ts';
import { readChannelFailure, writeChannelFailure } from '../placed/failure.ts';
import type { LiveSources } from '../placed/live-sources.ts';
import { leaveOwnStream, publishOwnName, type OwnNameOptions } from '../placed/own-name.ts';
import { MultiplexChannel } from './channel.ts';
import { readMultiplexSpec } from './spec.ts';

export interface MultiplexKindOptions extends OwnNameOptions {
  readonly sources: LiveSources;
  readonly log: Logger;
}

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
    const { application, name, signal } = task;
    const spec = readMultiplexSpec(task.spec);
    if (spec === undefined) throw new ChannelError('the definition cannot be read');
    if (application.config.providers.multiplex === undefined)
      throw new ChannelError('the Multiplex provider is off: the application has no <Multiplex/> in its Providers');
    const { sources } = this.#options;
    const log = this.#options.log.child({ module: this.name, stream: `${application.internalName}/${name.id}` });
    const leave = (input: InputStream, reason: string): void => {
      if (signal.aborted) leaveOwnStream(input, signal, reason);
      else input.close(reason);
    };
    const channel = new MultiplexChannel({
      application,
      name: name.id,
      spec,
      sources,
      publish: () => this.#publish(task, spec.bypassTranscoder),
      leave,
      log,
    });
    task.show(() => channel.report);
    // it waits for its sources as long as it takes
    task.started();
    await channel.run(signal);
  }

  #publish({ application, persistent, name, signal }: Task, isPassthrough: boolean): Promise<InputStream | undefined> {
    const { maxConnection = 0 } = application.config.providers.multiplex ?? {};
    const options = { replace: false, maxConnections: maxConnection, isPassthrough };
    // it was created long before it takes the name
    const task = { application, persistent, isNew: false, name, signal };
    return publishOwnName(task, { type: 'Multiplex', kind: 'multiplex' }, options, this.#options);
  }
}
