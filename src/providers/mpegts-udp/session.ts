import type { Access } from '../../access/access.ts';
import type { PublisherGrant } from '../../access/publisher-grant.ts';
import type { Application } from '../../core/application.ts';
import type { Connection } from '../../core/source.ts';
import type { InputStream } from '../../core/input-stream.ts';
import { KilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import { TsSource } from '../mpegts-intake/source.ts';
import { Datagrams } from './datagrams.ts';
import type { MappedStream } from './port-map.ts';

/** Most datagrams held until the stream is published, and their bytes at the usual size. */
const MAX_HELD = 1024;
const MAX_HELD_BYTES = MAX_HELD * 1500;
/** Silence after which another sender may take over the stream. */
const TAKE_OVER_MS = 1500;

export interface Sender {
  readonly address: string;
  readonly port: number;
}

export interface SessionEnd {
  readonly reason: string;
  /** Whether the stream was never published. */
  readonly refused: boolean;
  /** Whether the stream was ended on purpose, so that further datagrams of its sender are ignored. */
  readonly unwanted: boolean;
}

interface Published {
  readonly grant: PublisherGrant<'mpegts'>;
  readonly input: InputStream;
  readonly application: Application;
}

export interface MpegtsSessionOptions {
  readonly access: Access;
  readonly log: Logger;
  readonly url: string;
  readonly local: { readonly address?: string; readonly port: number };
  readonly mapped: MappedStream;
  /** Called once. */
  readonly onEnd: (end: SessionEnd) => void;
}

/** Publishing session of a port, from the first datagram until it is silent. */
export class MpegtsSession {
  readonly #options: MpegtsSessionOptions;
  readonly #faults: FaultLog;
  #sender: Sender;
  #lastReceived = performance.now();
  #held: Buffer[] = [];
  #heldBytes = 0;
  #input: InputStream | undefined;
  #source: TsSource | undefined;
  #datagrams: Datagrams | undefined;
  readonly #gone = new AbortController();
  #closed = false;

  constructor(sender: Sender, options: MpegtsSessionOptions) {
    this.#options = options;
    this.#sender = sender;
    this.#faults = new FaultLog(options.log);
    this.#publish().then(
      (published) => this.#begin(published),
      (error: unknown) => this.#refuse(error),
    );
  }

  /** @param data is kept */
  receive(data: Buffer, { address, port }: Sender): void {
    if (this.#closed) return;
    const now = performance.now();
    if (port !== this.#sender.port || address !== this.#sender.address) {
      if (now - this.#lastReceived < TAKE_OVER_MS) {
        this.#faults.count('ignored datagrams from another sender');
        return;
      }
      this.#sender = { address, port };
      this.#options.log.info({ remote: `${address}:${port}` }, 'another sender has taken over the stream');
      this.#source?.lost();
    }
    this.#lastReceived = now;
    if (this.#datagrams !== undefined) {
      this.#input?.counters.received(data.length);
      this.#datagrams.push(data);
    } else if (this.#held.length < MAX_HELD && this.#heldBytes + data.length <= MAX_HELD_BYTES) {
      this.#held.push(data);
      this.#heldBytes += data.length;
    } else {
      this.#faults.count('dropped datagrams that arrived before the stream began');
    }
  }

  close(reason: string): void {
    this.#end({ reason, refused: false, unwanted: false });
  }

  /** Publishes the stream; a guard may choose another application than that of the port. */
  async #publish(): Promise<Published> {
    const {
      access,
      url,
      local,
      mapped: { application: asked, name },
    } = this.#options;
    const { address, port } = this.#sender;
    const vhostName = asked.vhost.name;
    const grant = await access.admitPublisher({
      direction: 'incoming',
      protocol: 'mpegts',
      vhostName,
      hostName: vhostName,
      app: asked.name,
      stream: name,
      query: new URLSearchParams(),
      url,
      client: { address, port, realAddress: address, localPort: local.port },
      signal: this.#gone.signal,
    });
    const source = { type: 'MPEGTS', kind: 'mpegts', url, connection: () => this.#connection() } as const;
    const input = await grant.publish(source);
    return { grant, input, application: grant.vhost.demandApplication(grant.app) };
  }

  #begin({ grant, input, application }: Published): void {
    if (this.#closed) {
      input.close('the sender has gone');
      return;
    }
    const { log } = this.#options;
    const { config } = grant;
    this.#input = input;
    const source = new TsSource({
      sink: input,
      config,
      log,
      faults: this.#faults,
      onGap: () => input.counters.lost(1),
      onFailure: (reason) => this.close(reason),
    });
    this.#source = source;
    this.#datagrams = new Datagrams(config.packetReordering, {
      data: (bytes) => source.push(bytes),
      lost: () => source.lost(),
      fault: (reason) => this.#faults.count(reason),
    });
    input.once('close', (reason) => {
      this.#end({ reason, refused: false, unwanted: grant.expired || isUnwanted(input, application) });
    });
    input.once('tracks', () => log.debug('the tracks are known'));
    log.info({ remote: `${this.#sender.address}:${this.#sender.port}` }, 'receiving MPEG-TS');
    const held = this.#held;
    this.#held = [];
    for (const data of held) {
      if (this.#closed) return;
      input.counters.received(data.length);
      this.#datagrams.push(data);
    }
  }

  #refuse(error: unknown): void {
    if (!(error instanceof KilnError))
      this.#options.log.error({ err: error }, 'the MPEG-TS stream could not be published');
    const reason = error instanceof KilnError ? error.message : 'internal error';
    this.#end({ reason, refused: true, unwanted: false });
  }

  #end(end: SessionEnd): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#gone.abort();
    this.#held = [];
    this.#datagrams?.close();
    this.#source?.close();
    this.#faults.close();
    this.#input?.close(end.reason);
    if (!end.refused) this.#options.log.debug(`receiving ended: ${end.reason}`);
    this.#options.onEnd(end);
  }

  #connection(): Connection {
    const { local } = this.#options;
    return {
      transport: 'UDP',
      protocol: 'UDP',
      ...(local.address !== undefined && { localAddress: local.address }),
      localPort: local.port,
      remoteAddress: this.#sender.address,
      remotePort: this.#sender.port,
    };
  }
}

/** Whether the stream was ended on purpose: not by a restart of its application, nor because another node has its name. */
function isUnwanted({ continuity }: InputStream, application: Application): boolean {
  return continuity.over && !continuity.taken && !application.closed;
}
