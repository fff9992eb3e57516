import type { Application } from '../../core/application.ts';
import type { FindOutput } from '../../core/find-output.ts';
import type { Registry } from '../../core/registry.ts';
import type { StartCaches } from '../../core/start-caches.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { KilnError } from '../../errors.ts';
import type { StreamChanges } from '../../directory/stream-changes.ts';
import { pause } from '../../lib/pause.ts';
import { ChannelError } from './error.ts';
import { LiveSource, type LiveSink } from './live-source.ts';
import type { StreamUrl } from './stream-url.ts';

/** Longest wait for a change before a stream is looked up again: an origin that may have it does not report changes. */
const AGAIN_MS = 1000;

export interface LiveSourcesOptions {
  readonly registry: Pick<Registry, 'vhosts'>;
  readonly find: FindOutput;
  readonly changes: StreamChanges;
  readonly caches: StartCaches;
  readonly graph: Loops;
}

/** Finds loops of channels that play each other. */
export interface Loops {
  /**
   * Finds the loop that a channel would close by playing a stream: its channels in order, the last being the first.
   * @returns undefined when there is none
   */
  chain(application: Application, name: string, url: StreamUrl): Promise<readonly string[] | undefined>;
}

export interface ReadBy {
  readonly application: Application;
  readonly name: string;
}

/** Opens output streams of any node as sources of channels. */
export class LiveSources {
  readonly #options: LiveSourcesOptions;

  constructor(options: LiveSourcesOptions) {
    this.#options = options;
  }

  /**
   * Opens a stream as soon as it exists. When the promise resolves, the sink has its tracks.
   * @returns undefined when the signal has aborted
   * @throws ChannelError when the stream is made of the channel that reads it, directly or through other channels
   */
  async open(url: StreamUrl, by: ReadBy, sink: LiveSink, signal: AbortSignal): Promise<LiveSource | undefined> {
    if (isOwn(url, by) && url.stream === by.name) throw loop(url);
    while (!signal.aborted) {
      await this.#checkLoop(url, by);
      const application = await this.#application(url);
      const atOnce = application && (await this.#find(application, url.stream));
      const output = atOnce ?? (application && (await this.#await(application, url.stream, signal)));
      if (signal.aborted) return undefined;
      if (output === undefined) {
        await pause(AGAIN_MS, signal);
        continue;
      }
      if (isOwn(url, by) && output.input.name === by.name) throw loop(url);
      // by now it may be a channel that plays this one
      if (atOnce === undefined) await this.#checkLoop(url, by);
      if (signal.aborted) return undefined;
      if (!output.closed) return this.#play(output, sink);
    }
    return undefined;
  }

  /** @returns undefined when the application does not exist (any more) */
  async #await(application: Application, name: string, signal: AbortSignal): Promise<OutputStream | undefined> {
    const { changes } = this.#options;
    const watch = changes.watch(application, (input) => application.mayPutOut(input, name));
    try {
      while (!signal.aborted && !application.closed) {
        const output = await this.#find(application, name);
        if (output !== undefined) return output;
        await watch.next(AGAIN_MS, signal);
      }
      return undefined;
    } finally {
      watch.close();
    }
  }

  async #find(application: Application, name: string): Promise<OutputStream | undefined> {
    try {
      const output = application.output(name) ?? (await this.#options.find(application, name, new URLSearchParams()));
      return output === undefined || output.closed || output.tracks.length === 0 ? undefined : output;
    } catch (error) {
      // its node is unreachable at the moment
      if (error instanceof KilnError) return undefined;
      throw error;
    }
  }

  /** @throws ChannelError */
  async #checkLoop(url: StreamUrl, { application, name }: ReadBy): Promise<void> {
    const chain = await this.#options.graph.chain(application, name, url);
    if (chain !== undefined) throw loop(url, chain);
  }

  async #application({ vhost, app, stream }: StreamUrl): Promise<Application | undefined> {
    return await this.#options.registry.vhosts.get(vhost)?.viewed(app, stream);
  }

  #play(output: OutputStream, sink: LiveSink): LiveSource {
    const { caches } = this.#options;
    const source = new LiveSource(output, sink, () => caches.hold(output));
    try {
      source.play(caches.of(output));
      return source;
    } catch (error) {
      source.close();
      throw error;
    }
  }
}

/** Whether a stream and a channel belong to the same application. */
function isOwn({ vhost, app }: StreamUrl, { application }: ReadBy): boolean {
  return application.vhost.name === vhost && application.name === app;
}

function loop({ vhost, app, stream }: StreamUrl, chain: readonly string[] = []): ChannelError {
  const through = chain.length === 0 ? '' : `: ${chain.join(' -> ')}`;
  return new ChannelError(`stream://${vhost}/${app}/${stream} is made of the channel that should read it${through}`);
}
