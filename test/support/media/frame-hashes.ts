import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { formOf } from '../../../src/containers/mpegts/elementary-form.ts';
import type { Packet } from '../../../src/core/packet.ts';

/** The data of a frame as a file has it. */
export type FrameForm = (packet: Packet) => Buffer;

export const canonical: FrameForm = ({ data }) => data;

/** As an elementary stream of MPEG-TS, for example with start codes and ADTS, and as ffmpeg tells it: Opus without control headers. */
export const elementary: FrameForm = ({ track, key, data }) => {
  if (track.codec === 'OPUS') return data;
  const pieces: Buffer[] = [];
  formOf(track).payload(data, key, pieces);
  return Buffer.concat(pieces);
};

/** MD5 of the data of every packet of a kind. */
export function sentFrames(packets: readonly Packet[], type: 'video' | 'audio', form: FrameForm): string[] {
  return packets
    .filter(({ track }) => track.type === type)
    .map((packet) => createHash('md5').update(form(packet)).digest('hex'));
}

/** The same of every frame of a kind in a file, as ffmpeg reads them. @param input what it reads, with its options */
export function readFrames(input: readonly string[], type: 'video' | 'audio'): string[] {
  const output = ['-map', `0:${type[0]}`, '-c', 'copy', '-f', 'framemd5', '-'];
  const lines = execFileSync('ffmpeg', ['-v', 'error', ...input, ...output])
    .toString()
    .split('\n');
  return lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split(',')[5]?.trim() ?? '');
}
