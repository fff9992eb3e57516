import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { PATIENCE_MS } from '../time/until.ts';

const run = promisify(execFile);

export interface Probe {
  readonly streams: readonly { readonly codec_name: string; readonly width?: number }[];
  readonly packets: readonly { readonly codec_type: string; readonly flags: string }[];
}

const SHOWN = ['-show_streams', '-show_packets', '-show_entries', 'packet=codec_type,flags', '-of', 'json'];

/** The tracks of a source, and the packets of its first two seconds, as ffprobe finds them. */
export async function probe(source: string): Promise<Probe> {
  const args = ['-v', 'error', ...SHOWN, '-read_intervals', '%+2', '-analyzeduration', '1500000', source];
  const { stdout } = await run('ffprobe', args, { timeout: PATIENCE_MS, maxBuffer: 2 ** 26 });
  return JSON.parse(stdout) as Probe;
}

/** Codecs that ffprobe found, in alphabetical order. */
export const codecsOf = ({ streams }: Probe) => streams.map(({ codec_name }) => codec_name).sort();
