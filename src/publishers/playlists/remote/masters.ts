import { kilnError } from '../../../errors.ts';
import { AwayError, type OwnerLink } from './link.ts';
import type { MasterState, Newcomer } from './wire.ts';

const MAX_MASTERS = 64;

/**
 * The master playlists of a stream that another node has. Each is asked for anew, once for all who come at the same time
 * and name no session: the owner says whether there is room, and whether a name is free.
 */
export class RemoteMasters {
  readonly #link: OwnerLink;
  readonly #onRun: (run: string) => void;
  readonly #asked = new Map<string, Promise<MasterState | undefined>>();
  /** The last ones, for when nobody answers. */
  readonly #known = new Map<string, MasterState>();

  /** @param onRun called with the run of the stream that the owner tells of */
  constructor(link: OwnerLink, onRun: (run: string) => void) {
    this.#link = link;
    this.#onRun = onRun;
  }

  /**
   * @param session of the player, for the owner to count; one with openings is the owner's to end
   * @returns undefined as long as there is nothing to play
   * @throws what the owner says; streamInterrupted when nobody answers and nothing is known
   */
  async get(file: string, session: Newcomer | undefined): Promise<MasterState | undefined> {
    try {
      return await (session === undefined ? this.#getOnce(file) : this.#loadNoted(file, session));
    } catch (error) {
      if (!(error instanceof AwayError)) throw error;
      if (session !== undefined && session.grant.openings.length > 0) throw kilnError('streamInterrupted');
      const known = this.#known.get(file);
      if (known === undefined) throw kilnError('streamInterrupted');
      return known;
    }
  }

  /** What is known is of another stream. */
  clear(): void {
    this.#known.clear();
  }

  #getOnce(file: string): Promise<MasterState | undefined> {
    let asked = this.#asked.get(file);
    if (asked === undefined) {
      if (this.#asked.size >= MAX_MASTERS) throw kilnError('tooManyWaiting');
      asked = this.#loadNoted(file, undefined).finally(() => this.#asked.delete(file));
      this.#asked.set(file, asked);
    }
    return asked;
  }

  async #loadNoted(file: string, session: Newcomer | undefined): Promise<MasterState | undefined> {
    const { answer: state } = await this.#link.ask(this.#link.calls.master, { file, session });
    if (state === null) return undefined;
    this.#onRun(state.run);
    if (this.#known.size < MAX_MASTERS || this.#known.has(file)) {
      const { run, template } = state;
      this.#known.set(file, { run, template });
    }
    return state;
  }
}
