import type { BlockList, Socket } from 'node:net';
import type { Access } from '../access/access.ts';
import type { ApplicationConfig } from '../config/model.ts';
import type { PortRange } from '../config/values.ts';
import type { Registry } from '../core/registry.ts';
import { SessionTable } from '../lib/session-table.ts';
import type { Logger } from '../log/log.ts';
import type { RequestUrl } from '../protocols/rtsp/request-url.ts';
import type { Peer } from '../protocols/tcp.ts';
import type { CertificateStore } from '../tls/certificates.ts';
import type { Users } from './admission.ts';
import { DatagramPorts } from './datagram-ports.ts';
import type { RtspService } from './part.ts';
import { RtspServer } from './server.ts';
import { RtspSession } from './session.ts';

/** A service, with the UDP ports of its media: pairs of an even port and the next. */
export interface OfferedService {
  readonly service: RtspService;
  readonly udpPort: readonly PortRange[];
}

/** Ports, and what is served there. */
export interface PortGroup {
  readonly port: number | undefined;
  readonly tlsPort: number | undefined;
  /** At least one. */
  readonly services: readonly OfferedService[];
}

export interface RtspPortsOptions {
  readonly registry: Registry;
  readonly access: Access;
  readonly certificates: CertificateStore;
  readonly log: Logger;
  readonly ip: readonly string[];
  readonly groups: readonly PortGroup[];
  readonly proxyNetworks?: BlockList | undefined;
}

const LIMITS = { sessions: 4096, waiting: 512, purpose: 'publish or play' };
const CHECK_MS = 1000;

/** Ports of RTSP, for publishers, players, or both. They open when an application has a module that is served there. */
export class RtspPorts {
  readonly #options: RtspPortsOptions;
  readonly #log: Logger;
  readonly #sessions = new SessionTable<RtspSession>(LIMITS);
  readonly #serving = new Set<RtspSession>();
  readonly #timer = setInterval(() => this.#check(), CHECK_MS).unref();
  /** UDP ports by address of this server. */
  readonly #datagrams = new Map<string, DatagramPorts>();
  readonly #servers: RtspServer[] = [];
  /** Groups that are not open yet. */
  readonly #unopened: Set<PortGroup>;
  #opening: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  /** @throws the system's error, or ListenError, when a port cannot be opened */
  static async listen(options: RtspPortsOptions): Promise<RtspPorts> {
    const ports = new RtspPorts(options);
    try {
      await ports.#openWanted();
    } catch (error) {
      await ports.close();
      throw error;
    }
    return ports;
  }

  private constructor(options: RtspPortsOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'rtsp' });
    this.#unopened = new Set(options.groups);
  }

  /** Whether the ports of a service are open. */
  isOpen(service: RtspService): boolean {
    return this.#options.groups.some(
      (group) => !this.#unopened.has(group) && group.services.some((offered) => offered.service === service),
    );
  }

  /** Stops listening and disconnects every client. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      clearInterval(this.#timer);
      await this.#opening;
      this.#sessions.closeAll('the server is closing');
      for (const server of this.#servers) await server.close();
      for (const datagrams of this.#datagrams.values()) datagrams.close();
    })();
    return this.#closed;
  }

  #isWanted({ services }: PortGroup): boolean {
    const uses = (config: ApplicationConfig): boolean => services.some(({ service }) => service.isUsedBy(config));
    for (const { applications, template } of this.#options.registry.vhosts.values()) {
      if (template !== undefined && uses(template)) return true;
      for (const { config } of applications.values()) if (uses(config)) return true;
    }
    return false;
  }

  async #openWanted(): Promise<void> {
    for (const group of this.#unopened) {
      if (!this.#isWanted(group)) continue;
      this.#unopened.delete(group);
      for (const host of this.#options.ip) this.#servers.push(await this.#listen(host, group));
    }
  }

  async #listen(host: string, { port, tlsPort, services }: PortGroup): Promise<RtspServer> {
    const { access, certificates, proxyNetworks } = this.#options;
    const datagrams = await this.#datagramsAt(host);
    const inClear = services.map(({ service, udpPort }) => ({ service, datagrams: datagrams.within(udpPort) }));
    const secured = services.map(({ service }) => ({ service, datagrams: undefined }));
    const direction = services.some(({ service }) => service.direction === 'outgoing') ? 'outgoing' : 'incoming';
    return RtspServer.listen({
      host,
      port,
      tlsPort,
      certificates,
      proxyNetworks,
      log: this.#log,
      objection: () => (this.#closed === undefined ? this.#sessions.objection : 'the server is closing'),
      // media over TLS is in the connection alone
      onClient: (socket, peer, isSecure) => this.#take(socket, peer, isSecure, isSecure ? secured : inClear),
      onRefused: (reason, { remoteAddress: address, remotePort }, kind) =>
        access.report({ direction, protocol: 'rtsp', address, port: remotePort }, reason, kind),
    });
  }

  /** UDP ports of all groups, which may share them. */
  async #datagramsAt(host: string): Promise<DatagramPorts> {
    const known = this.#datagrams.get(host);
    if (known !== undefined) return known;
    const ranges = this.#options.groups.flatMap(({ services }) => services.flatMap(({ udpPort }) => udpPort));
    const opened = await DatagramPorts.open(host, ranges);
    this.#datagrams.set(host, opened);
    return opened;
  }

  #take(
    socket: Socket,
    peer: Peer,
    isSecure: boolean,
    served: ConstructorParameters<typeof RtspSession>[2]['served'],
  ): void {
    const { access } = this.#options;
    const session: RtspSession = new RtspSession(socket, peer, {
      log: this.#log,
      isSecure,
      served,
      usersOf: (url) => this.#usersOf(url),
      rejected: (request, reason) => access.report(request, reason),
      onServing: () => {
        this.#sessions.setWaiting(session, false);
        this.#serving.add(session);
      },
      onClose: () => {
        this.#sessions.delete(session);
        this.#serving.delete(session);
      },
    });
    this.#sessions.add(session, peer.remoteAddress);
  }

  #usersOf({ host, app }: RequestUrl): Users | undefined {
    const vhost = this.#options.registry.resolve(host);
    const config: ApplicationConfig | undefined = vhost?.applications.get(app)?.config ?? vhost?.template;
    return config?.users?.user;
  }

  #check(): void {
    for (const session of this.#serving) session.check();
    if (this.#opening !== undefined || this.#closed !== undefined) return;
    if (![...this.#unopened].some((group) => this.#isWanted(group))) return;
    this.#opening = this.#openWanted()
      .catch((err: unknown) =>
        this.#log.error(
          { err },
          'the ports of RTSP could not be opened; the server has to be restarted when they are free',
        ),
      )
      .finally(() => (this.#opening = undefined));
  }
}
