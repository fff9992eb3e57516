import { once } from 'node:events';
import type { Json } from '#cluster';
import type { StartCaches } from '../core/start-caches.ts';
import type { Logger } from '../log/log.ts';
import { shownUrl } from '../protocols/outbound/shown.ts';
import type { StreamKind, StreamTask } from '../tasks/kind.ts';
import type { PushProtocol } from './destination.ts';
import { Pusher } from './pusher.ts';
import type { OpenSink } from './sink.ts';
import { destinationOf, readPushSpec } from './spec.ts';

export const PUSH = 'push';

export interface PushKindOptions {
  readonly sinks: Readonly<Record<PushProtocol, OpenSink>>;
  readonly caches: StartCaches;
  readonly log: Logger;
}

/** Tasks that push streams to other servers. */
export class PushKind implements StreamKind {
  readonly name = PUSH;
  readonly #options: PushKindOptions;

  constructor(options: PushKindOptions) {
    this.#options = options;
  }

  follows(spec: Json): string | undefined {
    return readPushSpec(spec)?.stream.name;
  }

  async run(task: StreamTask): Promise<void> {
    const { sinks, caches } = this.#options;
    const { name, application, output, signal } = task;
    const spec = readPushSpec(task.spec);
    const destination = spec && destinationOf(spec);
    const { push } = application.config.publishers;
    const log = this.#options.log.child({
      module: 'push',
      push: name.id,
      stream: `${application.internalName}/${output.name}`,
      ...(spec && { destination: shownUrl(spec.url) }),
    });
    if (spec === undefined || destination === undefined || push === undefined) {
      log.warn('the stream is not pushed: the application has no Push publisher, or this version not this protocol');
      if (!signal.aborted) await once(signal, 'abort');
      return;
    }
    // keeps the stream in use between connections, too
    const leaves = [caches.hold(output), output.addRelay()];
    try {
      await new Pusher({
        task,
        destination,
        choice: spec.stream,
        open: sinks[destination.protocol],
        connectMs: push.connectionTimeout,
        sendMs: push.sendTimeout,
        skipsStandby: !(spec.standby ?? push.standby ?? true),
        start: () => caches.of(output),
        log,
      }).run();
    } finally {
      for (const leave of leaves) leave();
    }
  }
}
