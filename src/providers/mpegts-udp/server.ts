import type { Access } from '../../access/access.ts';
import type { UdpPorts } from '../../config/udp-ports.ts';
import type { Registry } from '../../core/registry.ts';
import type { Logger } from '../../log/log.ts';
import { MpegtsPort } from './port.ts';
import { bindUdp, joinGroup } from './udp-socket.ts';

export interface MpegtsServerOptions {
  readonly registry: Registry;
  readonly access: Access;
  readonly log: Logger;
  /** Addresses to listen on; `*` and `::` for every one. */
  readonly hosts: readonly string[];
  readonly ports: readonly UdpPorts[];
}

/**
 * Receives MPEG-TS over UDP, plain or in RTP, on addresses of the server and multicast groups. Ports are bound at the
 * start; the stream of a port is looked up when a sender begins.
 */
export class MpegtsServer {
  readonly #ports: MpegtsPort[] = [];

  /** @throws the error of a port that cannot be bound; the others are freed again */
  static async listen(options: MpegtsServerOptions): Promise<MpegtsServer> {
    const server = new MpegtsServer();
    try {
      await server.#open(options);
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  /** Bound ports, in the order of the configuration. */
  get ports(): number[] {
    return this.#ports.map(({ port }) => port);
  }

  async close(): Promise<void> {
    await Promise.all(this.#ports.map((port) => port.close()));
  }

  async #open({ registry, access, hosts, ports, log: base }: MpegtsServerOptions): Promise<void> {
    const log = base.child({ module: 'mpegts' });
    for (const { first, last, group } of ports) {
      for (let port = first; port <= last; port++) {
        const common = { registry, access, log };
        if (group !== undefined)
          this.#ports.push(new MpegtsPort({ ...common, group, socket: await joinGroup(hosts, { group, port }) }));
        else
          for (const host of hosts) this.#ports.push(new MpegtsPort({ ...common, socket: await bindUdp(host, port) }));
      }
    }
  }
}
