/** Size of a transport packet, and its first byte (ISO/IEC 13818-1 2.4.3.2). */
export const PACKET_BYTES = 188;
export const SYNC_BYTE = 0x47;

/** PIDs of fixed meaning (table 2-3). */
export const PID = Object.freeze({ pat: 0, null: 0x1fff });

/** Kinds of sections (table 2-31; SCTE 35 9.6). */
export const TABLE_ID = Object.freeze({ pat: 0, pmt: 2, splice: 0xfc });

/** Clock of PES headers: ticks a second, and width in bits. */
export const CLOCK = Object.freeze({ timebase: Object.freeze({ num: 1, den: 90_000 }), bits: 33 });

/** Types of streams in a PMT (ISO/IEC 13818-1 table 2-34; from 0x80 on ATSC A/53 and SCTE 35). */
export const STREAM_TYPE = Object.freeze({
  mpeg1Video: 0x01,
  mpeg2Video: 0x02,
  mpeg1Audio: 0x03,
  mpeg2Audio: 0x04,
  privatePes: 0x06,
  aacAdts: 0x0f,
  mpeg4Video: 0x10,
  aacLatm: 0x11,
  metadataPes: 0x15,
  h264: 0x1b,
  h265: 0x24,
  ac3: 0x81,
  scte35: 0x86,
  eac3: 0x87,
});

/** Descriptors (ISO/IEC 13818-1 table 2-45; from 0x40 on DVB's, ETSI EN 300 468 table 12). */
export const DESCRIPTOR = Object.freeze({
  registration: 0x05,
  language: 0x0a,
  metadataPointer: 0x25,
  metadata: 0x26,
  teletext: 0x56,
  subtitling: 0x59,
  ac3: 0x6a,
  eac3: 0x7a,
  dts: 0x7b,
  extension: 0x7f,
});

/** DVB's extension descriptors, by their first byte; 0x80 is user defined, and used by Opus in MPEG-TS. */
export const EXTENSION = Object.freeze({ opus: 0x80 });

/** format_identifier of registration and metadata descriptors. */
export const FORMAT = Object.freeze({
  ac3: 'AC-3',
  eac3: 'EAC3',
  opus: 'Opus',
  h265: 'HEVC',
  id3: 'ID3 ',
  klv: 'KLVA',
  scte35: 'CUEI',
});

/** stream_id of PES packets (table 2-22). */
export const STREAM_ID = Object.freeze({
  programStreamMap: 0xbc,
  private1: 0xbd,
  padding: 0xbe,
  private2: 0xbf,
  audio: 0xc0,
  video: 0xe0,
  ecm: 0xf0,
  emm: 0xf1,
  metadata: 0xfc,
  directory: 0xff,
});

export interface Descriptor {
  readonly tag: number;
  readonly data: Buffer;
}
