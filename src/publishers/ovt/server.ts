import type { BlockList } from 'node:net';
import { checkAccess } from '../../access/gate.ts';
import { internalName } from '../../core/application.ts';
import type { FindOutput } from '../../core/find-output.ts';
import type { Registry } from '../../core/registry.ts';
import { kilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log.ts';
import type { SessionNames } from '../../origins/session-names.ts';
import type { OvtUrl } from '../../protocols/ovt/url.ts';
import { SessionTable } from '../../protocols/session-table.ts';
import { includes, listenTcp, type TcpListener } from '../../protocols/tcp.ts';
import { Accounts } from './accounts.ts';
import { OvtSession, type Found } from './session.ts';

export interface OvtServerOptions {
  readonly registry: Registry;
  readonly log: Logger;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly proxyNetworks?: BlockList;
  /** Who may connect: OVT knows neither passwords nor encryption. */
  readonly networks: BlockList;
  /** Finds what is not here. */
  readonly find: FindOutput;
  readonly sessionNames: SessionNames;
}

const LIMITS = { sessions: 1024, waiting: 128, purpose: 'play' };
const RANGE_32 = 2 ** 32;

/** Gives streams to edges that speak OVT, on one port. */
export class OvtServer {
  readonly #options: OvtServerOptions;
  readonly #log: Logger;
  readonly #faults: FaultLog;
  readonly #accounts: Accounts;
  readonly #sessions = new SessionTable<OvtSession>(LIMITS);
  #listener: TcpListener | undefined;
  #lastId = 0;
  #closed: Promise<void> | undefined;

  /** @throws the system's error when the address cannot be listened on */
  static async listen(options: OvtServerOptions): Promise<OvtServer> {
    const server = new OvtServer(options);
    await server.#listen();
    return server;
  }

  private constructor(options: OvtServerOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'ovt' });
    this.#faults = new FaultLog(this.#log);
    this.#accounts = new Accounts(options.sessionNames);
  }

  get port(): number {
    return this.#listener?.port ?? 0;
  }

  /** Stops listening and ends every session. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#listener?.close();
      this.#sessions.closeAll('the server is closing');
      this.#faults.close();
    })();
    return this.#closed;
  }

  async #listen(): Promise<void> {
    const { host, port, proxyNetworks, networks } = this.#options;
    this.#listener = await listenTcp(
      { host, port, proxyNetworks, log: this.#log },
      (socket, { remoteAddress, remotePort }) => {
        const refused = this.#objection(includes(networks, remoteAddress));
        if (refused !== undefined) {
          this.#faults.count(`OVT connection refused: ${refused}`);
          socket.on('error', () => {}).destroy();
          return;
        }
        const log = this.#log.child({ remote: `${remoteAddress}:${remotePort}` });
        this.#lastId = (this.#lastId + 1) % RANGE_32;
        const session: OvtSession = new OvtSession(socket, {
          log,
          id: this.#lastId,
          forms: 'framed',
          find: (url) => this.#find(url),
          admit: (found, url, player) => this.#accounts.open(found, url, player),
          onPlaying: () => this.#sessions.setWaiting(session, false),
          onClose: () => this.#sessions.delete(session),
        });
        this.#sessions.add(session);
      },
    );
  }

  #objection(allowed: boolean): string | undefined {
    if (!allowed) return 'its address is in none of the networks of Bind/Publishers/OVT/Networks';
    if (this.#closed !== undefined) return 'the server is closing';
    return this.#sessions.objection;
  }

  /** @throws ovtStreamNotFound, accessDenied */
  async #find({ host, app, stream, query }: OvtUrl): Promise<Found> {
    const vhost = this.#options.registry.resolve(host);
    const name = `${vhost === undefined ? host : internalName(vhost.name, app)}/${stream}`;
    if (vhost !== undefined) checkAccess(vhost, 'publishers', 'ovt');
    const application = await vhost?.viewed(app, stream);
    const config = application?.config.publishers.ovt;
    const output =
      application !== undefined && config !== undefined
        ? (application.output(stream) ?? (await this.#options.find(application, stream, query)))
        : undefined;
    if (application === undefined || config === undefined || output === undefined)
      throw kilnError('ovtStreamNotFound', name);
    return { application, output, delayMs: config.delayBufferTimeMs };
  }
}
