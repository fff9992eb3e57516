import { fork, type ChildProcess } from 'node:child_process';
import type { FromPeer, ToPeer } from './peer-process.ts';
import { parseRtp, type Rtp } from './rtp.ts';
import type { PeerOptions } from './whep-peer.ts';

export interface Frame {
  readonly payloads: readonly Buffer[];
  readonly timestamp: number;
}

const peers = new Map<number, ViewerPeer>();
let child: ChildProcess | undefined;
let count = 0;

function tell(message: ToPeer): void {
  if (child === undefined) {
    child = fork(new URL('./peer-process.ts', import.meta.url), { serialization: 'advanced' });
    child.on('message', (news: FromPeer) => peers.get(news.id)?.hear(news));
    // it ends with the test file, and holds nothing up until then
    child.unref();
    child.channel?.unref();
  }
  child.send(message);
}

/** A `WhepPeer` in a process of its own, with what it received. */
export class ViewerPeer {
  readonly packets: { video: Rtp[]; audio: Rtp[] } = { video: [], audio: [] };
  state = 'new';
  readonly #options: PeerOptions;
  readonly #id = count++;
  readonly #waiters = new Set<() => void>();
  #local = '';

  constructor(options: PeerOptions = {}) {
    this.#options = options;
    peers.set(this.#id, this);
  }

  /** The offer with all candidates. */
  async offer(): Promise<string> {
    tell({ id: this.#id, do: 'offer', options: this.#options });
    await this.until(() => this.#local !== '');
    return this.#local;
  }

  /** Takes an offer; the answer with all candidates. */
  async answerTo(sdp: string): Promise<string> {
    tell({ id: this.#id, do: 'answerTo', sdp });
    await this.until(() => this.#local !== '');
    return this.#local;
  }

  /** Offers to a WHEP endpoint and takes its answer. @throws Error for any status but 201 */
  async play(url: string): Promise<Response> {
    const body = await this.offer();
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/sdp' }, body });
    const answer = await response.text();
    if (response.status !== 201) throw new Error(`${response.status}: ${answer}`);
    this.answer(answer);
    return response;
  }

  /** Takes the answer to its offer. */
  answer(sdp: string): void {
    tell({ id: this.#id, do: 'answer', sdp });
  }

  /** Resolves when `condition` holds, which is looked at with every packet and state. */
  async until(condition: () => boolean): Promise<void> {
    // the child holds nothing up, so that somebody must who waits for it
    const alive = setInterval(() => undefined, 1000);
    while (!condition()) await new Promise<void>((done) => this.#waiters.add(done));
    clearInterval(alive);
  }

  /** Whole video frames, those that ended. */
  frames(): Frame[] {
    const frames: Frame[] = [];
    let payloads: Buffer[] = [];
    for (const { payload, marker, timestamp } of this.packets.video) {
      payloads.push(payload);
      if (!marker) continue;
      frames.push({ payloads, timestamp });
      payloads = [];
    }
    return frames;
  }

  close(): void {
    peers.delete(this.#id);
    tell({ id: this.#id, do: 'close' });
  }

  /** What the child process tells of this peer. */
  hear(news: FromPeer): void {
    if (news.is === 'local') this.#local = news.sdp;
    else if (news.is === 'state') this.state = news.state;
    else this.packets[news.kind].push(parseRtp(Buffer.from(news.packet)));
    for (const waiter of this.#waiters) waiter();
    this.#waiters.clear();
  }
}
