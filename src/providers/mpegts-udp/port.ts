import type { Socket } from 'node:dgram';
import type { Access } from '../../access/access.ts';
import { udpUrl } from '../../config/udp-ports.ts';
import type { Registry } from '../../core/registry.ts';
import { hostInUrl } from '../../lib/address.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import { holdsTransportStream } from './datagrams.ts';
import { mappedStreams, type UdpPort } from './port-map.ts';
import { MpegtsSession, type Sender, type SessionEnd } from './session.ts';

/** Time for which a port ignores datagrams after a rejection, since thousands may arrive per second. */
const REFUSED_MS = 1000;
/** Silence after which a sender whose stream was ended on purpose may publish again. */
const UNWANTED_SILENCE_MS = 1500;
const WILDCARDS: readonly string[] = ['0.0.0.0', '::'];

export interface MpegtsPortOptions {
  readonly registry: Registry;
  readonly access: Access;
  readonly log: Logger;
  readonly socket: Socket;
  readonly group?: string;
}

/** UDP port with one sender at a time, which publishes the stream that the port is mapped to. */
export class MpegtsPort {
  readonly #options: MpegtsPortOptions;
  readonly #port: UdpPort;
  readonly #log: Logger;
  readonly #faults: FaultLog;
  #session: MpegtsSession | undefined;
  #deafUntil = 0;
  #unwanted: { readonly sender: Sender; readonly silence: Watchdog } | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: MpegtsPortOptions) {
    const { socket, group, log } = options;
    const { port } = socket.address();
    this.#options = options;
    this.#port = { port, ...(group !== undefined && { group }) };
    this.#log = log.child({ port, ...(group !== undefined && { group }) });
    this.#faults = new FaultLog(this.#log);
    socket.on('message', (data, sender) => this.#receive(data, sender));
    socket.on('error', (error) => this.#faults.count(`the socket failed: ${error.message}`));
  }

  get port(): number {
    return this.#port.port;
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#session?.close('the server is closing');
      this.#avoid(undefined);
      this.#faults.close();
      this.#options.socket.close(() => resolve());
    });
    return this.#closed;
  }

  #receive(data: Buffer, sender: Sender): void {
    if (this.#session !== undefined) this.#session.receive(data, sender);
    else if (this.#closed === undefined && this.#mayBegin(sender)) this.#begin(data, sender);
  }

  #mayBegin({ address, port }: Sender): boolean {
    if (performance.now() < this.#deafUntil) return false;
    if (this.#unwanted?.sender.port !== port || this.#unwanted.sender.address !== address) return true;
    this.#unwanted.silence.heard();
    return false;
  }

  #begin(data: Buffer, sender: Sender): void {
    if (!holdsTransportStream(data)) {
      this.#faults.count('ignored datagrams that are not MPEG-TS');
      return;
    }
    const [mapped, ...others] = mappedStreams(this.#options.registry, this.#port);
    if (mapped === undefined) {
      this.#deafUntil = performance.now() + REFUSED_MS;
      const { address, port } = sender;
      this.#options.access.report(
        { direction: 'incoming', protocol: 'mpegts', address, port, asked: `port ${this.port}` },
        'no application has a stream for the port',
      );
      return;
    }
    const { access, socket } = this.#options;
    const { internalName } = mapped.application;
    const { address } = socket.address();
    const local = { ...(!WILDCARDS.includes(address) && { address }), port: this.port };
    const log = this.#log.child({ stream: `${internalName}/${mapped.name}` });
    if (others.length > 0) log.warn(`${others.length + 1} streams are configured for this port: using the first`);
    const session: MpegtsSession = new MpegtsSession(sender, {
      access,
      log,
      local,
      mapped,
      url: udpUrl({ first: this.port, last: this.port }, hostInUrl(address)),
      onEnd: (end) => this.#ended(end, sender),
    });
    this.#session = session;
    session.receive(data, sender);
  }

  #ended({ refused, unwanted }: SessionEnd, sender: Sender): void {
    this.#session = undefined;
    this.#avoid(unwanted ? sender : undefined);
    if (refused) this.#deafUntil = performance.now() + REFUSED_MS;
  }

  #avoid(sender: Sender | undefined): void {
    this.#unwanted?.silence.close();
    this.#unwanted = sender && {
      sender,
      silence: new Watchdog(UNWANTED_SILENCE_MS, () => this.#avoid(undefined)).unref(),
    };
  }
}
