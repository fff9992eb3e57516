import type { Access } from '../../access/access.ts';
import type { RtmpProviderConfig } from '../../config/model.ts';
import type { InputStream } from '../../core/stream.ts';
import { KilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import type { ChunkLimits } from '../../protocols/rtmp/chunk-reader.ts';
import type { AmfValue } from '../../protocols/rtmp/amf-value.ts';
import { statusInfo } from '../../protocols/rtmp/command.ts';
import { RtmpError } from '../../protocols/rtmp/error.ts';
import type { ServerConnection } from '../../protocols/rtmp/server-connection.ts';
import { Passthrough } from '../intake/passthrough.ts';
import { DataEvents } from './data-events.ts';
import { Ingest } from './ingest.ts';
import type { Declared } from './metadata.ts';
import { refusalStatus, requestOf, type RtmpClient } from './request.ts';

/** Streams that a client may publish, one after the other. */
const MAX_PUBLICATIONS = 256;

export const BEFORE_PUBLISH: ChunkLimits = { messageBytes: 64 * 1024, partialBytes: 128 * 1024, chunkStreams: 32 };
const PUBLISHING: ChunkLimits = {
  messageBytes: 8 * 1024 * 1024,
  partialBytes: 16 * 1024 * 1024,
  chunkStreams: 64,
};

export interface PublisherContext {
  readonly access: Access;
  /** Enhanced RTMP is offered and taken. */
  readonly extended: boolean;
  /** The client speaks TLS. */
  readonly secure: boolean;
  /** The session publishes now, or no longer does. */
  readonly onPublishing: (publishing: boolean) => void;
}

/** The connection of a client. */
export interface ClientConnection {
  write(pieces: readonly Buffer[]): void;
  /** It is being found out whether the client may have a name: until `release` what it sends is held, so much of it. */
  hold(): void;
  release(): void;
  /** The client publishes no longer, but may do so again. */
  idle(): void;
  /** Does something that may cost the client its connection. */
  guard(step: () => void): void;
  /** Ends what is published over it. */
  close(reason: string, level?: 'debug' | 'info' | 'warn'): void;
}

export interface RtmpPublisherOptions {
  readonly wire: ServerConnection;
  readonly client: RtmpClient;
  readonly context: PublisherContext;
  readonly connection: ClientConnection;
  /** Names the connection. */
  readonly log: Logger;
}

/** One stream that is published. */
interface Publication {
  readonly input: InputStream;
  readonly ingest: Ingest;
  readonly events: DataEvents;
  readonly faults: FaultLog;
  readonly streamId: number;
}

/** A client that has connected, and the streams that it publishes, one after the other. */
export class RtmpPublisher {
  readonly #options: RtmpPublisherOptions;
  /** Names the stream as well, while there is one. */
  #log: Logger;
  #publications = 0;
  #publication: Publication | undefined;
  /** The log knows of a stream that this client has ended. */
  #hasPublished = false;
  /** What was read with the request, while it is being found out whether the client may have the name; the connection holds the rest. */
  #deferred: (() => void)[] | undefined;
  readonly #gone = new AbortController();
  #ended = false;

  constructor(options: RtmpPublisherOptions) {
    this.#options = options;
    this.#log = options.log;
  }

  get log(): Logger {
    return this.#log;
  }

  /** It neither publishes nor is about to. */
  get isIdle(): boolean {
    return this.#publication === undefined && this.#deferred === undefined;
  }

  /** The log has a line about the end of a stream of this client, or is about to have one. */
  get hasPublished(): boolean {
    return this.#hasPublished || (this.#publication?.input.tracks.length ?? 0) > 0;
  }

  /** Message stream of what it publishes. */
  get streamId(): number | undefined {
    return this.#publication?.streamId;
  }

  /** Does what the client asks for when its turn has come. */
  inTurn(step: () => void): void {
    if (this.#deferred === undefined) step();
    else this.#deferred.push(step);
  }

  /** So many bytes came. */
  received(bytes: number): void {
    this.#publication?.input.counters.received(bytes);
  }

  audio(payload: Buffer, timestamp: number): void {
    if (this.#deferred === undefined) this.#publication?.ingest.audio(payload, timestamp);
    else this.#deferred.push(() => this.#publication?.ingest.audio(payload, timestamp));
  }

  video(payload: Buffer, timestamp: number): void {
    if (this.#deferred === undefined) this.#publication?.ingest.video(payload, timestamp);
    else this.#deferred.push(() => this.#publication?.ingest.video(payload, timestamp));
  }

  metadata(declared: Declared): void {
    this.#publication?.ingest.metadata(declared);
  }

  /** @param values of any data message */
  event(values: readonly AmfValue[]): void {
    this.#publication?.events.take(values);
  }

  /** A data message cannot be read. @throws the error where nothing is published that it could harm */
  malformed(error: RtmpError): void {
    if (this.#publication === undefined) throw error;
    this.#publication.faults.count(`malformed data message: ${error.message}`);
  }

  /** @param key name of the stream, as the client gives it */
  publish(key: string, streamId: number): void {
    const { wire, connection } = this.#options;
    if (this.#publication !== undefined) {
      const info = statusInfo('error', 'NetStream.Publish.Failed', 'This connection is already publishing');
      return wire.status(streamId, info);
    }
    if (++this.#publications > MAX_PUBLICATIONS)
      throw new RtmpError(`more than ${MAX_PUBLICATIONS} streams on one connection`);
    this.#deferred = [];
    connection.hold();
    this.#open(key).then(
      ({ input, config }) => this.#proceed(() => this.#begin(input, config, streamId), input),
      (error: unknown) => this.#proceed(() => this.#refuse(error, streamId)),
    );
  }

  /**
   * Says whether what it publishes may be taken over on another node.
   * @returns false for a client that publishes nothing, or cannot be asked to reconnect
   */
  setHandsOver(handsOver: boolean): boolean {
    if (this.#publication === undefined || !this.#options.client.reconnects) return false;
    this.#publication.input.handsOver = handsOver;
    return true;
  }

  /** The client ends its stream but stays: it may publish again. */
  unpublish(): void {
    const { wire, connection } = this.#options;
    const publication = this.#publication;
    if (publication === undefined) return;
    this.#endPublication('the publisher ended the stream');
    this.#log.debug('the publisher has unpublished the stream');
    this.#log = this.#options.log;
    wire.setLimits(BEFORE_PUBLISH);
    const info = statusInfo('status', 'NetStream.Unpublish.Success', `${publication.input.name} is now unpublished.`);
    wire.status(publication.streamId, info);
    connection.idle();
  }

  /** The connection is closed. Idempotent. */
  end(reason: string): void {
    this.#ended = true;
    this.#gone.abort();
    this.#endPublication(reason);
  }

  /** @throws what Access.admitPublisher() and PublisherGrant.publish() do */
  async #open(key: string): Promise<{ input: InputStream; config: RtmpProviderConfig }> {
    const {
      client,
      context: { access, secure },
    } = this.#options;
    const { peer, address } = client;
    const grant = await access.admitPublisher({ ...requestOf(client, key), signal: this.#gone.signal });
    const { vhost, app, stream, config } = grant;
    this.#log = this.#options.log.child({ stream });
    const origin = secure ? address.origin.replace(/^rtmp:/, 'rtmps:') : address.origin;
    const { passthroughOutputProfile: isPassthrough } = config;
    const input = await grant.publish(
      {
        type: 'Rtmp',
        kind: 'rtmp',
        url: `${origin}/${app}/${stream}`,
        connection: () => ({ transport: 'TCP', protocol: 'TCP', ...peer }),
      },
      { isPassthrough },
    );
    if (isPassthrough) new Passthrough(vhost.demandApplication(app), input, (reason) => input.close(reason));
    return { input, config };
  }

  /** Goes on with what came meanwhile. @param input that ends when the client has left by now */
  #proceed(step: () => void, input?: InputStream): void {
    const { connection } = this.#options;
    const deferred = this.#deferred ?? [];
    this.#deferred = undefined;
    if (this.#ended) return input?.close('the publisher left');
    connection.guard(() => {
      step();
      // one of them may publish again, behind which the rest waits
      for (const next of deferred) if (!this.#ended) this.inTurn(next);
    });
    if (this.#deferred === undefined) connection.release();
  }

  #refuse(error: unknown, streamId: number): void {
    if (!(error instanceof KilnError)) throw error;
    this.#options.wire.status(streamId, statusInfo('error', refusalStatus(error), error.message));
    this.#options.connection.close(`refused: ${error.message}`, 'debug');
  }

  #begin(input: InputStream, config: RtmpProviderConfig, streamId: number): void {
    const { wire, context, connection } = this.#options;
    const faults = new FaultLog(this.#log);
    const ingest = new Ingest(input, {
      config,
      extended: context.extended,
      log: this.#log,
      faults,
      onFailure: (reason) => connection.close(reason, 'warn'),
    });
    const events = new DataEvents(input, config, faults);
    this.#publication = { input, ingest, events, faults, streamId };
    wire.setLimits(PUBLISHING);
    context.onPublishing(true);
    input.once('close', (reason) => this.#closedElsewhere(reason));
    wire.streamBegin(streamId);
    wire.status(streamId, statusInfo('status', 'NetStream.Publish.Start', `${input.name} is now published.`));
    this.#log.debug('publishing was accepted');
  }

  #closedElsewhere(reason: string): void {
    const publication = this.#publication;
    if (publication === undefined) return;
    this.#options.wire.status(publication.streamId, statusInfo('error', 'NetStream.Publish.Failed', reason));
    this.#options.connection.close(reason);
  }

  #endPublication(reason: string): void {
    const publication = this.#publication;
    if (publication === undefined) return;
    this.#publication = undefined;
    this.#hasPublished ||= publication.input.tracks.length > 0;
    publication.ingest.close();
    publication.events.close();
    publication.faults.close();
    publication.input.close(reason);
    this.#options.context.onPublishing(false);
  }
}
