import { setTimeout as delay } from 'node:timers/promises';
import { Kiln, type KilnOptions } from '../support/server/kiln.ts';
import { median } from '../support/load/statistics.ts';
import { cpuSeconds } from '../support/load/usage.ts';
import { Program } from '../support/load/program.ts';
import { ROUNDS } from './ratio.ts';
import type { LlhlsCommands } from '../support/load/programs/watch-llhls.ts';
import type { PublishCommands } from '../support/load/programs/publish.ts';
import type { WebrtcCommands } from '../support/load/programs/watch-webrtc.ts';

export const LLHLS =
  '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount>';

/** Streams are put out as they come, as where other servers are measured. */
const BYPASS = `<OutputProfiles><OutputProfile><Name>bypass</Name><OutputStreamName>\${OriginStreamName}</OutputStreamName>
  <Encodes><Video><Bypass>true</Bypass></Video><Audio><Bypass>true</Bypass></Audio></Encodes></OutputProfile></OutputProfiles>`;

export interface Rig {
  readonly kiln: Kiln;
  readonly publishers: Program<PublishCommands>;
  readonly webrtc: Program<WebrtcCommands>;
  readonly llhls: Program<LlhlsCommands>;
}

/** Runs `measure` with a server that encodes nothing unless told to, and programs that are its clients. */
export async function withServer<T>(measure: (rig: Rig) => Promise<T>, options: KilnOptions = {}): Promise<T> {
  const kiln = await Kiln.start({ llhls: LLHLS, webrtc: '<Timeout>30000</Timeout>', application: BYPASS, ...options });
  const publishers = new Program<PublishCommands>('publish.ts');
  const webrtc = new Program<WebrtcCommands>('watch-webrtc.ts');
  const llhls = new Program<LlhlsCommands>('watch-llhls.ts');
  try {
    return await measure({ kiln, publishers, webrtc, llhls });
  } finally {
    await Promise.all([publishers.stop(), webrtc.stop(), llhls.stop()]);
    await kiln.stop();
  }
}

/** CPU time that a process and its children take, in percent of one core: median of some intervals. */
export async function cpuPercent(pid: number, { times = 3, seconds = 4 } = {}): Promise<number> {
  const [shares = []] = await cpuRounds([[pid]], { times, seconds });
  return median(shares);
}

/** CPU time that groups of processes and their children take at the same time, in percent of one core: a list for each group. */
export async function cpuRounds(
  groups: readonly (readonly number[])[],
  { times = ROUNDS, seconds = 4 } = {},
): Promise<number[][]> {
  const used = () => groups.map((pids) => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0));
  const shares = groups.map((): number[] => []);
  for (let i = 0; i < times; i++) {
    const before = used();
    const start = performance.now();
    await delay(seconds * 1000);
    const percent = 1e5 / (performance.now() - start);
    used().forEach((after, group) => shares[group]?.push((after - (before[group] ?? 0)) * percent));
  }
  return shares;
}
