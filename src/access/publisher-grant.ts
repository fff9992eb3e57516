import type { ApplicationConfig } from '../config/model.ts';
import type { Application, PublishOptions } from '../core/application.ts';
import { isStreamName } from '../core/names.ts';
import type { Source } from '../core/source.ts';
import type { InputStream } from '../core/input-stream.ts';
import type { VirtualHost } from '../core/vhost.ts';
import { kilnError } from '../errors.ts';
import type { Grant } from './grant.ts';
import type { IncomingProtocol } from './request.ts';

/** Gives input streams their names, each once in the whole cluster. */
export interface Names {
  publish(
    application: Application,
    name: string,
    source: Source,
    options: Omit<PublishOptions, 'continuity'> & {
      readonly silence: 'continue';
      readonly signal: AbortSignal | undefined;
    },
  ): Promise<InputStream>;
}

export type ProviderConfig<P extends IncomingProtocol> = NonNullable<ApplicationConfig['providers'][P]>;

export interface PublisherGrantOptions<P extends IncomingProtocol> {
  readonly vhost: VirtualHost;
  readonly app: string;
  readonly stream: string;
  readonly config: ProviderConfig<P>;
  readonly grant: Grant;
  readonly names: Names;
  /** Aborts when the publisher has gone. */
  readonly signal: AbortSignal | undefined;
  readonly onRefused: (error: unknown) => void;
}

/** An admitted publisher. It ends with `end`, or with the stream that it publishes. */
export class PublisherGrant<P extends IncomingProtocol = IncomingProtocol> {
  readonly vhost: VirtualHost;
  /** Names that it publishes under: a guard may have replaced the requested ones. */
  readonly app: string;
  readonly stream: string;
  readonly config: ProviderConfig<P>;
  readonly #grant: Grant;
  readonly #options: PublisherGrantOptions<P>;
  #isRefused = false;

  constructor(options: PublisherGrantOptions<P>) {
    this.#options = options;
    this.vhost = options.vhost;
    this.app = options.app;
    this.stream = options.stream;
    this.config = options.config;
    this.#grant = options.grant;
  }

  /** Whether its stream was closed because its time was over. */
  get expired(): boolean {
    return this.#grant.expired;
  }

  /**
   * Claims the name of the stream, which may take seconds while other nodes are asked. The stream is closed when the publisher's time is over.
   * @throws streamExists, streamNameUnconfirmed, tooManyConnections, tooManyApplications, nodeDraining, applicationNotFound,
   * tooManyWaiting, clientGone, streamEnded when it was closed by then; the publisher is rejected in each case
   */
  async publish(source: Source, { isPassthrough = false } = {}): Promise<InputStream> {
    const { names, signal } = this.#options;
    try {
      const options = { ...publishOptions(this.config), silence: 'continue', isPassthrough, signal } as const;
      const input = await names.publish(this.vhost.demandApplication(this.app), this.stream, source, options);
      input.once('close', (reason) => this.end(reason));
      this.#grant.limit((reason) => input.close(reason));
      // the publisher would not be notified any more
      if (input.closed) throw kilnError('streamEnded');
      return input;
    } catch (error) {
      this.refuse(error);
      throw error;
    }
  }

  /** Ends the grant of a publisher that cannot publish, and reports the error once. */
  refuse(error: unknown): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    this.#options.onRefused(error);
    this.end((error as Error).message);
  }

  /** The publisher leaves, or never published. Idempotent. */
  end(reason: string): void {
    this.#grant.end(reason);
  }
}

/** @throws streamNameInvalid */
export function checkStreamName(stream: string): void {
  if (!isStreamName(stream)) throw kilnError('streamNameInvalid', stream.slice(0, 80));
}

/** Options of the claim of a stream's name. */
export function publishOptions(
  config: ProviderConfig<IncomingProtocol>,
): Pick<PublishOptions, 'replace' | 'maxConnections'> {
  const replace = 'blockDuplicateStreamName' in config && !config.blockDuplicateStreamName;
  return { replace, maxConnections: config.maxConnection };
}
