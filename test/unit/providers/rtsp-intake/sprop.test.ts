import test from 'ava';
import { buildHevcConfig } from '../../../../src/codecs/h265-config.ts';
import { buildAvcConfig } from '../../../../src/codecs/h264-config.ts';
import * as h265 from '../../../../src/codecs/h265.ts';
import type { VideoTrack } from '../../../../src/core/track.ts';
import type { RtspMedia } from '../../../../src/protocols/rtsp/description.ts';
import { trackSource } from '../../../../src/providers/rtsp-intake/track-source.ts';
import { annexB, h264Pps, h264Sps } from '../../../support/media/nal-build.ts';
import { box, vector } from '../../codecs/vectors.ts';

function described(encoding: string, parameters: Record<string, string>): VideoTrack | undefined {
  const format = { encoding, clockRate: 90_000, parameters };
  const media = { kind: 'video', format, bitrate: 0 } as unknown as RtspMedia;
  return trackSource(media, 0)?.track as VideoTrack | undefined;
}

test('sets of a description may have start codes', (t) => {
  const [sps, pps] = [h264Sps(), h264Pps()];
  const record = buildAvcConfig({ sps: [sps], pps: [pps] });
  const code = Buffer.of(0, 0, 0, 1);
  const lists: Record<string, readonly Buffer[]> = {
    bare: [sps, pps],
    'a code in front of both': [annexB([sps]), annexB([pps])],
    'both in one value': [annexB([sps, pps])],
    'both in one value, without the first code': [annexB([sps, pps]).subarray(4)],
    'both in one value, with a code behind': [Buffer.concat([annexB([sps, pps]), code])],
    'one that is malformed between': [sps, Buffer.of(0x67, 77, 0), pps],
  };
  for (const [name, values] of Object.entries(lists)) {
    const sets = values.map((value) => value.toString('base64')).join(',');
    t.deepEqual(described('H264', { 'sprop-parameter-sets': sets })?.config, record, name);
  }
  t.is(described('H264', { 'sprop-parameter-sets': '' }), undefined);
});

test('sets of H.265 in a description may have start codes', (t) => {
  const { vps, sps, pps } = h265.parseHevcConfig(box(vector('h265-main.mp4'), 'hvcC'));
  const record = buildHevcConfig({ vps, sps, pps });
  for (const form of [(nals: readonly Buffer[]) => nals[0] as Buffer, annexB]) {
    const parameters = {
      'sprop-vps': form(vps).toString('base64'),
      'sprop-sps': form(sps).toString('base64'),
      'sprop-pps': form(pps).toString('base64'),
    };
    t.deepEqual(described('H265', parameters)?.config, record);
  }
});
