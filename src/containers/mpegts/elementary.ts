import { opusHeadOf } from './opus.ts';
import { DESCRIPTOR, EXTENSION, FORMAT, STREAM_TYPE, type Descriptor } from './stream-types.ts';
import type { ProgramMap, ProgramStream } from './tables.ts';

/** Form of a stream's payload. */
export type TsForm = 'H264' | 'H265' | 'ADTS' | 'LATM' | 'MPEG audio' | 'AC-3' | 'Opus' | 'ID3' | 'KLV' | 'SCTE-35';

/** Supported stream of a program. */
export interface ElementaryStream {
  readonly pid: number;
  readonly kind: 'video' | 'audio' | 'data';
  readonly form: TsForm;
  /** ISO 639-2 code. */
  readonly language?: string;
  /** Identification header of Opus, if the PMT gives the channels. */
  readonly header?: Buffer;
}

/** Unsupported stream, and its name. */
export interface UnknownStream {
  readonly pid: number;
  readonly unsupported: string;
}

const KINDS: Readonly<Record<TsForm, ElementaryStream['kind']>> = {
  H264: 'video',
  H265: 'video',
  ADTS: 'audio',
  LATM: 'audio',
  'MPEG audio': 'audio',
  'AC-3': 'audio',
  Opus: 'audio',
  ID3: 'data',
  KLV: 'data',
  'SCTE-35': 'data',
};

const { h264, h265, aacAdts, aacLatm, mpeg1Audio, mpeg2Audio, ac3, eac3, scte35 } = STREAM_TYPE;
const FORMS: ReadonlyMap<number, TsForm> = new Map<number, TsForm>([
  [h264, 'H264'],
  [h265, 'H265'],
  [aacAdts, 'ADTS'],
  [aacLatm, 'LATM'],
  [mpeg1Audio, 'MPEG audio'],
  [mpeg2Audio, 'MPEG audio'],
  [ac3, 'AC-3'],
  [eac3, 'AC-3'],
  [scte35, 'SCTE-35'],
]);
const PRIVATE_FORMATS: ReadonlyMap<string, TsForm> = new Map<string, TsForm>([
  [FORMAT.opus, 'Opus'],
  [FORMAT.ac3, 'AC-3'],
  [FORMAT.eac3, 'AC-3'],
  [FORMAT.h265, 'H265'],
  [FORMAT.klv, 'KLV'],
]);
const PRIVATE_DESCRIPTORS: ReadonlyMap<number, TsForm> = new Map([
  [DESCRIPTOR.ac3, 'AC-3'],
  [DESCRIPTOR.eac3, 'AC-3'],
]);

const NAMES: ReadonlyMap<number, string> = new Map([
  [STREAM_TYPE.mpeg1Video, 'MPEG-1 video'],
  [STREAM_TYPE.mpeg2Video, 'MPEG-2 video'],
  [STREAM_TYPE.mpeg4Video, 'MPEG-4 part 2 video'],
]);
const PRIVATE_NAMES: ReadonlyMap<number, string> = new Map([
  [DESCRIPTOR.teletext, 'teletext'],
  [DESCRIPTOR.subtitling, 'DVB subtitles'],
  [DESCRIPTOR.dts, 'DTS'],
]);
/** Registration of programs whose stream types from 0x80 on are those of Blu-ray discs. */
const BLU_RAY = 'HDMV';
const BLU_RAY_FORMS: ReadonlyMap<number, TsForm> = new Map([
  [0x81, 'AC-3'],
  [0x84, 'AC-3'],
]);
const USER_TYPES = 0x80;

/** Streams of a program, in the order of its PMT. */
export function elementaryStreams(map: ProgramMap): (ElementaryStream | UnknownStream)[] {
  const ofDisc = registration(map.descriptors) === BLU_RAY;
  return map.streams.map((stream) => {
    const { pid, descriptors } = stream;
    const form = ofDisc && stream.type >= USER_TYPES ? BLU_RAY_FORMS.get(stream.type) : formOf(stream);
    if (form === undefined) return { pid, unsupported: nameOf(stream) };
    const language = languageOf(descriptors);
    const header = form === 'Opus' ? opusHeader(descriptors) : undefined;
    return { pid, kind: KINDS[form], form, ...(language && { language }), ...(header && { header }) };
  });
}

function formOf({ type, descriptors }: ProgramStream): TsForm | undefined {
  if (type === STREAM_TYPE.metadataPes) return metadataForm(descriptors);
  if (type !== STREAM_TYPE.privatePes) return FORMS.get(type);
  const byFormat = PRIVATE_FORMATS.get(registration(descriptors) ?? '');
  if (byFormat !== undefined) return byFormat;
  for (const { tag } of descriptors) {
    const form = PRIVATE_DESCRIPTORS.get(tag);
    if (form !== undefined) return form;
  }
  return undefined;
}

function nameOf({ type, descriptors }: ProgramStream): string {
  const name = NAMES.get(type);
  if (name !== undefined) return name;
  const privateName = descriptors.flatMap(({ tag }) => PRIVATE_NAMES.get(tag) ?? [])[0] ?? registration(descriptors);
  const number = `stream type 0x${type.toString(16).padStart(2, '0')}`;
  return privateName === undefined ? number : `${privateName} (${number})`;
}

/** format_identifier, if it is text (ISO/IEC 13818-1 2.6.8). */
function registration(descriptors: readonly Descriptor[]): string | undefined {
  const format = descriptors.find(({ tag }) => tag === DESCRIPTOR.registration)?.data.toString('latin1', 0, 4);
  return format !== undefined && /^[ -~]{4}$/.test(format) ? format : undefined;
}

/** Form of timed metadata: a registration or metadata descriptor names it, by identifiers of application and format (2.6.60). */
function metadataForm(descriptors: readonly Descriptor[]): TsForm | undefined {
  const names = (format: string): boolean =>
    descriptors.some(({ tag, data }) => tag === DESCRIPTOR.metadata && data.includes(format, 0, 'latin1'));
  if (names(FORMAT.id3)) return 'ID3';
  return registration(descriptors) === FORMAT.klv || names(FORMAT.klv) ? 'KLV' : undefined;
}

/** Language of a language descriptor (2.6.18); undefined for `und` and codes that are no letters. */
function languageOf(descriptors: readonly Descriptor[]): string | undefined {
  const code = descriptors
    .find(({ tag }) => tag === DESCRIPTOR.language)
    ?.data.toString('latin1', 0, 3)
    .toLowerCase();
  return code !== undefined && /^[a-z]{3}$/.test(code) && code !== 'und' ? code : undefined;
}

function opusHeader(descriptors: readonly Descriptor[]): Buffer | undefined {
  const extension = descriptors.find(({ tag, data }) => tag === DESCRIPTOR.extension && data[0] === EXTENSION.opus);
  const code = extension?.data[1];
  return code === undefined ? undefined : opusHeadOf(code);
}
