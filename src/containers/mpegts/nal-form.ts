import { isParameterSet as isAvcSet, parseAvcConfig } from '../../codecs/h264.ts';
import { isParameterSet as isHevcSet, parseHevcConfig } from '../../codecs/h265.ts';
import { nalUnits } from '../../codecs/nal.ts';
import type { Packet } from '../../core/packet.ts';
import type { ElementaryForm } from './elementary-form.ts';
import { STREAM_ID, STREAM_TYPE } from './stream-types.ts';

const START_CODE = Buffer.of(0, 0, 0, 1);
/** Access unit delimiters for pictures of any type, with start codes (H.264 7.3.2.4, H.265 7.3.2.5). */
const DELIMITER = { H264: Buffer.of(0, 0, 0, 1, 0x09, 0xf0), H265: Buffer.of(0, 0, 0, 1, 0x46, 0x01, 0x50) };

/**
 * H.264 and H.265 as a byte stream (Annex B), with a delimiter before every access unit, and all parameter sets before
 * key frames.
 * @throws BitstreamError
 */
export function nalForm(codec: 'H264' | 'H265', config: Buffer): ElementaryForm {
  const delimiter = DELIMITER[codec];
  const isSet = codec === 'H264' ? isAvcSet : isHevcSet;
  // key frames with sets of their own have all that they need
  const head = (data: Buffer, key: Packet['key']): Buffer => (key && !isSet(data.subarray(4, 6)) ? keyHead : delimiter);
  const keyHead = Buffer.concat([delimiter, ...parameterSets(codec, config).flatMap((nal) => [START_CODE, nal])]);
  return {
    streamType: codec === 'H264' ? STREAM_TYPE.h264 : STREAM_TYPE.h265,
    streamId: STREAM_ID.video,
    descriptors: [],
    size: (data, key) => head(data, key).length + byteStreamSize(data),
    payload: (data, key, pieces) => {
      pieces.push(head(data, key));
      for (const nal of nalUnits(data)) pieces.push(START_CODE, nal);
    },
  };
}

function parameterSets(codec: 'H264' | 'H265', config: Buffer): readonly Buffer[] {
  if (codec === 'H264') {
    const { sps, spsExtensions, pps } = parseAvcConfig(config);
    return [...sps, ...spsExtensions, ...pps];
  }
  const { vps, sps, pps } = parseHevcConfig(config);
  return [...vps, ...sps, ...pps];
}

/** Size as a byte stream: start codes replace lengths of the same size. */
function byteStreamSize(data: Buffer): number {
  let size = 0;
  for (const nal of nalUnits(data)) size += START_CODE.length + nal.length;
  return size;
}
