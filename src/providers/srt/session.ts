import type { Access } from '../../access/access.ts';
import { srtAccess } from '../../access/srt-request.ts';
import type { SrtProviderConfig } from '../../config/model.ts';
import type { Connection } from '../../core/source.ts';
import type { InputStream } from '../../core/input-stream.ts';
import { KilnError } from '../../errors.ts';
import { hostInUrl } from '../../lib/address.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import type { SrtConnection } from '../../protocols/srt/connection.ts';
import { SrtLink } from '../../protocols/srt/link.ts';
import type { StreamId } from '../../protocols/srt/stream-id.ts';
import { TsSource } from '../mpegts-intake/source.ts';
import type { HeldMedia, HeldQueue } from './held-media.ts';

export interface SrtSessionContext {
  readonly access: Access;
  readonly log: Logger;
  readonly held: HeldMedia;
  readonly onPublishing: () => void;
  /** Called when the publisher has left and the end of its media is still to come. */
  readonly onLeaving: () => void;
  readonly onClose: () => void;
}

/** Session of one publisher. Closing is idempotent and its reason is logged once. */
export class SrtSession {
  readonly #connection: SrtConnection;
  readonly #id: StreamId;
  readonly #context: SrtSessionContext;
  readonly #log: Logger;
  readonly #faults: FaultLog;
  readonly #held: HeldQueue;
  readonly #link: SrtLink;
  #unlink: (() => void) | undefined;
  #input: InputStream | undefined;
  #source: TsSource | undefined;
  readonly #gone = new AbortController();
  #closed = false;

  constructor(connection: SrtConnection, id: StreamId, context: SrtSessionContext) {
    this.#connection = connection;
    this.#id = id;
    this.#context = context;
    const { peer } = connection;
    this.#log = context.log.child({
      remote: `${hostInUrl(peer.address)}:${peer.port}`,
      host: id.host,
      app: id.app,
      stream: id.stream,
    });
    this.#faults = new FaultLog(this.#log);
    this.#held = context.held.open();
    const link = new SrtLink('received', this.#log);
    this.#link = link;
    connection.handlers = {
      counted: (statistics) => link.counted(statistics),
      data: (bytes) => this.#receive(bytes),
      lost: (messages) => this.#lose(messages),
      leaving: () => context.onLeaving(),
      close: (reason) => {
        this.#source?.flush();
        this.close(reason);
      },
    };
  }

  /** Claims the name of the stream, for which other nodes may be asked; holds the media that arrives until then. */
  async open(): Promise<void> {
    const { peer, local } = this.#connection;
    this.#connection.read();
    try {
      const grant = await this.#context.access.admitPublisher({
        ...srtAccess(this.#id, peer, local?.port ?? 0),
        direction: 'incoming',
        protocol: 'srt',
        signal: this.#gone.signal,
      });
      const { app, stream, config } = grant;
      const url = `srt://${this.#id.host}:${local?.port ?? 0}/${app}/${stream}`;
      const input = await grant.publish({ type: 'SRT', kind: 'srt', url, connection: () => this.#ends() });
      if (this.#closed) input.close('the publisher left');
      else this.#begin(input, config);
    } catch (error) {
      if (error instanceof KilnError) return this.close(`refused: ${error.message}`, 'debug');
      this.#log.error({ err: error }, 'the SRT session failed');
      this.close('internal error', 'warn');
    }
  }

  publishes({ host, app, stream }: StreamId): boolean {
    return this.#id.host === host && this.#id.app === app && this.#id.stream === stream;
  }

  close(reason: string, level: 'debug' | 'info' | 'warn' = 'info'): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#gone.abort();
    this.#connection.close((srt) => this.#log[level]({ srt }, `SRT session closed: ${reason}`));
    this.#held.close();
    this.#source?.close();
    this.#faults.close();
    this.#unlink?.();
    this.#input?.close(reason);
    this.#context.onClose();
  }

  #begin(input: InputStream, config: SrtProviderConfig): void {
    this.#input = input;
    this.#unlink = input.counters.link('in', this.#link);
    this.#source = new TsSource({
      sink: input,
      config,
      log: this.#log,
      faults: this.#faults,
      onFailure: (reason) => this.close(reason, 'warn'),
    });
    input.once('close', (reason) => this.close(reason));
    input.once('tracks', () => {
      this.#log.debug('the tracks are known');
      this.#context.onPublishing();
    });
    this.#log.debug('publishing was accepted');
    if (this.#held.dropped) this.#log.warn('the beginning of the stream was dropped: its admission took too long');
    this.#held.release({ data: (bytes) => this.#receive(bytes), lost: (messages) => this.#lose(messages) });
  }

  #receive(bytes: Buffer): void {
    if (this.#source === undefined) return this.#held.data(bytes);
    this.#input?.counters.received(bytes.length);
    this.#source.push(bytes);
  }

  /** Counts messages that were not received in time, in spite of retransmission. */
  #lose(messages: number): void {
    if (this.#source === undefined) return this.#held.lost(messages);
    this.#input?.counters.lost(messages);
    this.#faults.count('SRT messages were lost in the network');
    this.#source.lostMessages(messages);
  }

  #ends(): Connection {
    const { peer, local } = this.#connection;
    const { address: remoteAddress, port: remotePort } = peer;
    const own = local && { localAddress: local.address, localPort: local.port };
    return { transport: 'SRT', protocol: 'SRT', ...own, remoteAddress, remotePort };
  }
}
