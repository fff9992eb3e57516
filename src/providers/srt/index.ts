import type { Access } from '../../access/access.ts';
import { askedBySrt, srtAccess } from '../../access/srt-request.ts';
import type { SrtBindConfig } from '../../config/model.ts';
import type { PortRange } from '../../config/values.ts';
import { KilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import { SessionTable } from '../../lib/session-table.ts';
import type { SrtConnection } from '../../protocols/srt/connection.ts';
import { reachableHost } from '../../protocols/srt/address.ts';
import { listenPlaces, type SrtCaller } from '../../protocols/srt/listener.ts';
import { eachPort, SrtPorts } from '../../protocols/srt/ports.ts';
import { REJECTION, rejectionOf } from '../../protocols/srt/rejection.ts';
import { SrtlaPorts } from '../../protocols/srt/srtla/ports.ts';
import { UNREADABLE_STREAM_ID, type StreamId } from '../../protocols/srt/stream-id.ts';
import { HeldMedia } from './held-media.ts';
import { SrtSession } from './session.ts';

export interface SrtProviderOptions {
  readonly access: Access;
  readonly log: Logger;
  readonly ip: readonly string[];
  readonly bind: Pick<SrtBindConfig, 'port' | 'streamMap' | 'options'> & {
    /** Ports of SRTLA, which lead to the first SRT port. */
    readonly srtla?: { readonly port: readonly PortRange[] } | undefined;
  };
}

/** Each session has threads in libsrt. `waiting` limits those whose stream has no tracks yet. */
const LIMITS = { sessions: 1024, waiting: 256, purpose: 'publish' };
const MEGABYTE = 1024 * 1024;
/** `each` is four seconds at 8 Mbit/s. */
const HELD_LIMITS = { each: 4 * MEGABYTE, all: 128 * MEGABYTE };

/** Accepts publishers over SRT. */
export class SrtProvider {
  readonly #options: SrtProviderOptions;
  readonly #log: Logger;
  readonly #sessions = new SessionTable<SrtSession>(LIMITS);
  readonly #leaving = new Set<SrtSession>();
  readonly #held = new HeldMedia(HELD_LIMITS);
  #ports: SrtPorts | undefined;
  #srtla: SrtlaPorts | undefined;
  #closed: Promise<void> | undefined;

  /** @throws SrtMissingError when there is no libsrt, SrtError or ListenError when a port cannot be listened on */
  static async listen(options: SrtProviderOptions): Promise<SrtProvider> {
    const provider = new SrtProvider(options);
    const { ip, bind } = options;
    provider.#ports = await SrtPorts.open({
      ip,
      bind,
      log: provider.#log,
      clientAt: (caller) => provider.#srtla?.receiver.senderAt(caller),
      refuse: (id, caller) => provider.#refuse(id, caller),
      connection: (connection, id) => provider.#take(connection, id),
    });
    try {
      await provider.#listenForSrtla();
    } catch (error) {
      await provider.close();
      throw error;
    }
    return provider;
  }

  private constructor(options: SrtProviderOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'srt' });
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#ports?.closeListeners();
      this.#sessions.closeAll('the server is closing');
      await this.#ports?.close();
      this.#srtla?.close();
    })();
    return this.#closed;
  }

  async #listenForSrtla(): Promise<void> {
    const { ip, bind } = this.#options;
    const places = listenPlaces(ip);
    const [place] = places;
    const [port] = eachPort(bind.port);
    if (bind.srtla === undefined || place === undefined || port === undefined) return;
    this.#srtla = await SrtlaPorts.open({
      places,
      ports: eachPort(bind.srtla.port),
      target: { address: reachableHost(place.host), port },
      log: this.#log,
    });
  }

  /** Decides without other nodes, because the port is blocked until it returns. */
  #refuse(id: StreamId | undefined, { peer, streamId, port }: SrtCaller): number | undefined {
    const { access } = this.#options;
    const reject = (reason: string, code: number): number => {
      const asked = askedBySrt(id, streamId);
      access.report({ direction: 'incoming', protocol: 'srt', ...peer, asked }, reason);
      return code;
    };
    const objection = this.#closed === undefined ? this.#sessions.objection : 'the server is closing';
    if (objection !== undefined) return reject(objection, REJECTION.overload);
    if (id === undefined) return reject(UNREADABLE_STREAM_ID, REJECTION.badRequest);
    if (id.mode === 'request') return reject('it asks to play on a port for publishers', REJECTION.badMode);
    this.#makeRoom(id);
    try {
      access.duringHandshake.checkPublisher({ ...srtAccess(id, peer, port), direction: 'incoming', protocol: 'srt' });
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      return rejectionOf(error);
    }
  }

  /**
   * Closes a leaving session of the same stream, so that a publisher that reconnected gets its name; the rest of the old
   * media is dropped.
   */
  #makeRoom(id: StreamId): void {
    for (const session of this.#leaving) if (session.publishes(id)) session.close('the same publisher has reconnected');
  }

  #take(connection: SrtConnection, id: StreamId): void {
    const { access } = this.#options;
    const session: SrtSession = new SrtSession(connection, id, {
      access,
      log: this.#log,
      held: this.#held,
      onPublishing: () => this.#sessions.setWaiting(session, false),
      onLeaving: () => this.#leaving.add(session),
      onClose: () => {
        this.#sessions.delete(session);
        this.#leaving.delete(session);
      },
    });
    this.#sessions.add(session, connection.peer.address);
    void session.open();
  }
}
