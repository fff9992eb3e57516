import type { Socket } from 'node:dgram';
import { bindUdp } from '../../../core/bind-udp.ts';
import { canonicalAddress } from '../../../lib/address.ts';
import type { Logger } from '../../../log/log.ts';
import type { SrtAddress } from '../address.ts';
import type { SrtlaPath } from './group.ts';
import { SrtlaReceiver } from './receiver.ts';

/** Where an SRTLA port listens: a host as of SrtListenOptions. */
interface Place {
  readonly host: string;
  readonly ipv4Too?: boolean;
}

export interface SrtlaPortsOptions {
  readonly places: readonly Place[];
  readonly ports: readonly number[];
  /** Where the SRT port is called. */
  readonly target: SrtAddress;
  readonly log: Logger;
}

/** For what comes while this process does something else; the system may grant less (net.core.rmem_max). */
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
/** Unsent bytes of a socket above which packets are dropped, as a network would do. */
const MAX_QUEUED_BYTES = 1024 * 1024;

/** UDP ports of SRTLA before an SRT port. */
export class SrtlaPorts {
  readonly receiver: SrtlaReceiver;
  readonly #log: Logger;
  readonly #sockets: Socket[] = [];

  /** @throws ListenError */
  static async open(options: SrtlaPortsOptions): Promise<SrtlaPorts> {
    const opened = new SrtlaPorts(options);
    try {
      for (const port of options.ports) for (const place of options.places) await opened.#listen(place, port);
    } catch (error) {
      opened.close();
      throw error;
    }
    return opened;
  }

  private constructor({ target, log }: SrtlaPortsOptions) {
    this.#log = log;
    this.receiver = new SrtlaReceiver({ log, open: (received) => openPath(target, received) });
  }

  /** Idempotent. */
  close(): void {
    for (const socket of this.#sockets.splice(0)) socket.close();
    this.receiver.close();
  }

  async #listen({ host, ipv4Too = false }: Place, port: number): Promise<void> {
    const address = host === '*' ? '0.0.0.0' : host;
    const socket = await bindUdp({ address, port, ipv4Too, recvBufferSize: RECEIVE_BUFFER_BYTES });
    this.#sockets.push(socket);
    socket.on('error', (error) => this.#log.error({ err: error, port }, 'an SRTLA port failed'));
    socket.on('message', (data, from) => {
      const send = (answer: Buffer): void => {
        if (socket.getSendQueueSize() < MAX_QUEUED_BYTES) socket.send(answer, from.port, from.address, () => {});
      };
      this.receiver.receive(data, { address: canonicalAddress(from.address), port: from.port, local: port, send });
    });
  }
}

/** A socket of its own for each group: the SRT port distinguishes callers by their addresses. */
async function openPath({ address, port }: SrtAddress, received: (data: Buffer) => void): Promise<SrtlaPath> {
  const socket = await bindUdp({ address, port: 0, recvBufferSize: RECEIVE_BUFFER_BYTES });
  // that the SRT port is gone shows in that it does not answer
  socket.on('error', () => {});
  socket.on('message', received);
  // from here on no other process is heard
  await new Promise<void>((resolve, reject) =>
    socket.connect(port, address, (error?: Error) => {
      if (error === undefined) return resolve();
      socket.close();
      reject(error);
    }),
  );
  let closed = false;
  return {
    local: { address: canonicalAddress(socket.address().address), port: socket.address().port },
    send: (data) => {
      if (!closed && socket.getSendQueueSize() < MAX_QUEUED_BYTES) socket.send(data, () => {});
    },
    close: () => {
      if (closed) return;
      closed = true;
      socket.close();
    },
  };
}
