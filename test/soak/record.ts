import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, rmSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kiln } from '../support/server/kiln.ts';
import { encodeClip, loadClip, type Clip } from '../support/load/clip.ts';
import { LivePublisher } from '../support/load/live-publisher.ts';
import { startNode, usedRedis } from '../support/server/nodes.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { until } from '../support/time/until.ts';
import { Random } from './random.ts';
import { hasIndex, recordedFrames } from './recorded-files.ts';

const APP = '/v1/vhosts/default/apps/app';
const STREAM = 'live';
const FRAMERATE = 30;
/** A fragment, and what is on its way from the publisher to the disk. */
const MAX_LOST = 1.5 * FRAMERATE;
/** Of a file, of which a fragment is on the disk then. */
const BEGUN_MS = 1200;
const TOLD = 20;
const DISK = 'size=256m';
const FILLING = Buffer.alloc(64 * 1024);
/** What records the stream, each in a folder of its own. */
const SPECS = [
  { kind: 'split', extension: 'mp4', interval: 2000 },
  { kind: 'whole', extension: 'mp4' },
  { kind: 'ts', extension: 'ts', interval: 3000 },
];

type Fault = 'owner' | 'server' | 'other' | 'full' | 'gone';

interface Told {
  readonly id: string;
  readonly state: string;
  readonly recordTime: number;
}

/**
 * Two nodes that record one stream, of which one is killed again and again, and a disk that is full or loses its folder.
 * @returns whether all finished files are whole, no frame is in two, and no more than a fragment is lost by any kill
 */
export async function record(
  folder: string,
  seed: number,
  kills: number,
  print: (text: string) => void,
): Promise<boolean> {
  const end = new Teardown();
  try {
    const recording = await Recording.start(end, folder, seed, print);
    for (let n = 1; n <= kills; n++) await recording.hurt(n);
    return await recording.isSound();
  } finally {
    await end.run();
  }
}

class Recording {
  readonly #root: string;
  readonly #disk: string;
  readonly #isMounted: boolean;
  readonly #nodes: readonly Kiln[];
  readonly #clip: Clip;
  readonly #random: Random;
  readonly #print: (text: string) => void;
  /** Which of the nodes has the stream. */
  #owner = 0;
  #publisher: LivePublisher | undefined;
  /** Number of the next frame that is sent. */
  #frame = 0;
  #run = 0;
  /** Frames that were sent before each fault, and what is to hold for them. */
  readonly #faults: { readonly fault: Fault; readonly run: number; readonly sent: number }[] = [];

  private constructor(
    disk: string,
    isMounted: boolean,
    nodes: readonly Kiln[],
    clip: Clip,
    random: Random,
    print: (text: string) => void,
  ) {
    this.#disk = disk;
    this.#root = join(disk, 'root');
    this.#isMounted = isMounted;
    this.#nodes = nodes;
    this.#clip = clip;
    this.#random = random;
    this.#print = print;
  }

  static async start(end: Teardown, folder: string, seed: number, print: (text: string) => void): Promise<Recording> {
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    const isMounted = mount(end, disk);
    print(`seed ${seed}${isMounted ? '' : ', no disk of its own: it is never full'}`);
    const file = join(folder, 'small.flv');
    await encodeClip(file, { size: '160x90', kbit: 250 });
    const publishers = `<FILE><RootPath>${join(disk, 'root')}</RootPath></FILE>`;
    const redis = await usedRedis(end);
    const nodes = await Promise.all(['a', 'b'].map((id) => startNode(end, redis, id, { publishers, storage: 'api' })));
    const recording = new Recording(disk, isMounted, nodes, await loadClip(file), new Random(seed), print);
    end.teardown(() => recording.#publisher?.close());
    await recording.#publish();
    await recording.#record();
    return recording;
  }

  /** Waits until all is recorded, and lets something happen to it after a while. */
  async hurt(n: number): Promise<void> {
    await this.#untilRecorded();
    await delay(this.#random.below(2000));
    const fault = this.#random.pick<Fault>(
      this.#isMounted ? ['owner', 'server', 'server', 'other', 'full', 'gone'] : ['owner', 'server', 'other', 'gone'],
    );
    const begun = performance.now();
    const sent = this.#publisher?.frames ?? this.#frame;
    this.#faults.push({ fault, run: this.#run, sent });
    if (fault === 'full') await this.#fill();
    else if (fault === 'gone') await this.#remove();
    else await this.#kill(fault);
    await this.#untilRecorded();
    this.#print(
      `${String(n).padStart(5)}: ${fault} at frame ${sent}, ${((performance.now() - begun) / 1000).toFixed(1)} s`,
    );
  }

  async isSound(): Promise<boolean> {
    await this.#untilRecorded();
    await this.#stop();
    this.#publisher?.close();
    const faults: string[] = [];
    const lost: number[] = [];
    let files = 0;
    for (const { kind } of SPECS) {
      for (let run = 0; run <= this.#run; run++) {
        const own = this.#faults.filter((fault) => fault.run === run);
        // its files went with the folder
        if (own.some(({ fault }) => fault === 'gone')) continue;
        const recorded = await recordedFrames(join(this.#root, `${kind}${run}`), faults);
        // a full disk has no room for it
        const isFull = own.some(({ fault }) => fault === 'full');
        for (const { path } of isFull ? recorded.slice(0, -1) : recorded)
          if (!hasIndex(path)) faults.push(`${path} has no index`);
        files += recorded.length;
        for (const { fault, sent } of own) {
          const last = recorded.findLast(({ first }) => first < sent)?.last ?? 0;
          const missing = Math.max(0, sent - 1 - last);
          lost.push(missing);
          if (missing > MAX_LOST) faults.push(`${kind}${run}: ${missing} frames lost by ${fault} at frame ${sent}`);
        }
      }
    }
    const left = readdirSync(this.#root, { recursive: true }).filter((name) => String(name).includes('tmp_'));
    if (left.length > 0) faults.push(`${left.length} files are not finished: ${left.slice(0, 3).join(', ')}`);
    for (const text of faults.slice(0, TOLD)) this.#print(`        ${text}`);
    const worst = Math.max(0, ...lost);
    this.#print(
      `${this.#faults.length} faults, ${files} files: ${faults.length} wrong, at the most ${worst} frames lost by one (${(worst / FRAMERATE).toFixed(2)} s)`,
    );
    return faults.length === 0;
  }

  /** To the nodes in turn, beginning with the owner, until one takes it. */
  async #publish(): Promise<void> {
    let turn = 0;
    this.#publisher = await until('a node takes the stream', async () => {
      this.#owner = (this.#owner + turn++ * Number(!this.#node.running)) % this.#nodes.length;
      return LivePublisher.start(this.#node.ports.rtmp, STREAM, this.#clip, this.#frame).catch(() => undefined);
    });
  }

  get #node(): Kiln {
    return this.#nodes[this.#owner] as Kiln;
  }

  async #record(): Promise<void> {
    for (const { kind, extension, interval } of SPECS) {
      const id = `${kind}${this.#run}`;
      const body = {
        id,
        stream: { name: STREAM },
        filePath: `\${Id}/\${TransactionId}_\${Sequence}.${extension}`,
        infoPath: `${id}/info.xml`,
        interval,
      };
      const { status } = await this.#node.api(`${APP}:startRecord`, 'POST', body);
      if (status !== 200) throw new Error(`the recording was answered ${status}`);
    }
  }

  async #stop(): Promise<void> {
    for (const { kind } of SPECS) await this.#node.api(`${APP}:stopRecord`, 'POST', { id: `${kind}${this.#run}` });
    const unfinished = (): string[] =>
      readdirSync(this.#disk, { recursive: true })
        .map(String)
        .filter((entry) => entry.includes(`${this.#run}/tmp_`));
    await until('all files are complete', () => unfinished().length === 0).catch((error: unknown) => {
      for (const node of this.#nodes) this.#print(node.log.split('\n').slice(-TOLD).join('\n'));
      throw new Error(unfinished().join(', '), { cause: error });
    });
  }

  async #states(): Promise<readonly Told[]> {
    const { status, body } = await this.#node.api<Told[]>(`${APP}:records`, 'POST', {});
    return status === 200
      ? body.response.filter(({ id }) => SPECS.some(({ kind }) => id === `${kind}${this.#run}`))
      : [];
  }

  async #untilRecorded(): Promise<void> {
    await until('all is recorded', async () => {
      const states = await this.#states().catch(() => []);
      return (
        states.length === SPECS.length &&
        states.every(({ state, recordTime }) => state === 'recording' && recordTime >= BEGUN_MS)
      );
    });
  }

  async #kill(fault: Fault): Promise<void> {
    const other = (this.#owner + 1) % this.#nodes.length;
    if (fault === 'other') return await (this.#nodes[other] as Kiln).restart();
    const killed = this.#node;
    this.#frame = this.#publisher?.frames ?? 0;
    if (fault === 'server') await killed.restart();
    else {
      killed.signal('SIGKILL');
      this.#owner = other;
    }
    this.#publisher?.close();
    this.#frame = Math.max(this.#frame, this.#publisher?.frames ?? 0);
    await this.#publish();
    if (fault === 'owner') await killed.restart();
  }

  async #fill(): Promise<void> {
    const filler = join(this.#disk, 'filler');
    try {
      for (;;) appendFileSync(filler, FILLING);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
    await this.#untilFailed();
    unlinkSync(filler);
    await this.#again();
  }

  /** Those that go on for long do not notice: what has no name any more can be written to. */
  async #remove(): Promise<void> {
    for (const { kind } of SPECS) rmSync(join(this.#root, `${kind}${this.#run}`), { recursive: true });
    await until(
      'those with an interval have failed',
      async () => (await this.#states()).filter(({ state }) => state === 'error').length >= SPECS.length - 1,
    );
    await this.#again();
  }

  async #untilFailed(): Promise<void> {
    await until('all have failed', async () => (await this.#states()).every(({ state }) => state === 'error'));
  }

  /** Errors are final: what failed is stopped and recorded under another name. */
  async #again(): Promise<void> {
    await this.#stop();
    this.#run += 1;
    await this.#record();
  }
}

/** Mounts a small disk of its own, where that is allowed. */
function mount(end: Teardown, disk: string): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', DISK, 'tmpfs', disk], { stdio: 'ignore' });
  } catch {
    return false;
  }
  end.teardown(() => execFileSync('umount', ['-l', disk]));
  return true;
}
