import { checkAccess } from '../../access/gate.ts';
import { internalName, type Application } from '../../core/application.ts';
import type { FindOutput } from '../../core/find-output.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { Registry } from '../../core/registry.ts';
import { sessionId, sessionName } from '../../core/session.ts';
import { isStarted } from '../../core/started.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { VirtualHost } from '../../core/vhost.ts';
import { kilnError } from '../../errors.ts';
import type { SessionNames } from '../../origins/session-names.ts';
import type { StreamId } from '../../protocols/srt/stream-id.ts';
import { playlistOf } from './selection.ts';

/** A viewer who may come in. */
export interface Admission {
  readonly output: OutputStream;
  readonly playlist: Playlist;
  /** By which it is played later than it comes, in milliseconds. */
  readonly delayMs: number;
  /** Of the session. */
  readonly id: string;
}

export interface SrtDeskOptions {
  readonly registry: Registry;
  /** What is not on this node. */
  readonly find: FindOutput;
  readonly sessionNames: SessionNames;
}

/** Who may see what over SRT, and how many. */
export class SrtDesk {
  readonly #options: SrtDeskOptions;

  constructor(options: SrtDeskOptions) {
    this.#options = options;
  }

  /**
   * What can be told of a viewer without asking anybody.
   * @throws what `admit` does
   */
  checkHere(id: StreamId): void {
    const vhost = this.#vhostOf(id);
    const application = vhost.applications.get(id.app);
    if (application === undefined) {
      // an origin may have it, for which it is made
      if (vhost.template === undefined) throw kilnError('applicationNotFound', vhost.name, id.app);
      return;
    }
    this.#checkRoom(application);
    const output = application.output(id.stream);
    if (output === undefined || output.tracks.length === 0) return;
    playlistOf(output, id.playlist);
    const name = sessionName(id.query);
    if (name !== undefined) application.checkSession(output.input.name, name);
  }

  /**
   * @throws vhostNotFound, accessDenied, applicationNotFound, providerDisabled, tooManyConnections, streamNotFound,
   * fileNotFound, sessionExists, sessionRefused
   */
  async admit(id: StreamId): Promise<Admission> {
    const { find, sessionNames } = this.#options;
    const vhost = this.#vhostOf(id);
    const application = (await vhost.viewed(id.app, id.stream)) ?? vhost.application(id.app);
    this.#checkRoom(application);
    const output = application.output(id.stream) ?? (await find(application, id.stream, id.query));
    if (output === undefined || !(await isStarted(output)))
      throw kilnError('streamNotFound', `${application.internalName}/${id.stream}`);
    const session = sessionId(id.query);
    if (sessionName(id.query) !== undefined) await sessionNames.take(application, output, session);
    // others came in while it was waited
    this.#checkRoom(application);
    application.checkSession(output.input.name, session);
    const delayMs = application.config.publishers.srt?.delayBufferTimeMs ?? 0;
    return { output, playlist: playlistOf(output, id.playlist), delayMs, id: session };
  }

  #vhostOf({ host }: StreamId): VirtualHost {
    const { registry } = this.#options;
    const vhost = registry.vhosts.get(host) ?? registry.resolve(host);
    if (vhost === undefined) throw kilnError('vhostNotFound', host);
    checkAccess(vhost, 'publishers', 'srt');
    return vhost;
  }

  #checkRoom({ config, counters, vhost, name }: Application): void {
    const { srt } = config.publishers;
    if (srt === undefined) throw kilnError('providerDisabled', 'SRT', internalName(vhost.name, name));
    if (srt.maxConnection > 0 && counters.publishers.srt >= srt.maxConnection)
      throw kilnError('tooManyConnections', srt.maxConnection);
  }
}
