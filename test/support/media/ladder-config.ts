/** Elements of `Encodes` in Server.xml. */
export const BYPASS = '<Video><Name>source</Name><Bypass>true</Bypass></Video>';
export const OPUS = '<Audio><Name>opus</Name><Codec>opus</Codec><Bitrate>64000</Bitrate></Audio>';
export const AAC = '<Audio><Name>aac</Name><Codec>aac</Codec><Bitrate>64000</Bitrate></Audio>';

/** A picture of some height in H.264 by x264, named `<height>p`. @param rest further elements */
export function video(height: number, kbit: number, rest = ''): string {
  return (
    `<Video><Name>${height}p</Name><Codec>h264</Codec><Height>${height}</Height><Bitrate>${kbit * 1000}</Bitrate>` +
    `<Preset>faster</Preset><ThreadCount>1</ThreadCount><Modules>x264</Modules>${rest}</Video>`
  );
}

export interface LadderOptions {
  /** Elements of the profile behind its `Encodes`. */
  readonly playlists?: string;
  /** Elements of `OutputProfiles` in front of the profile. */
  readonly options?: string;
  /** Further profiles. */
  readonly more?: string;
}

/** `OutputProfiles` with a profile whose output has the name of its input. */
export function ladderXml(
  encodes: readonly string[],
  { playlists = '', options = '', more = '' }: LadderOptions = {},
): string {
  return (
    `<OutputProfiles>${options}<OutputProfile><Name>ladder</Name><OutputStreamName>\${OriginStreamName}</OutputStreamName>` +
    `<Encodes>${encodes.join('')}</Encodes>${playlists}</OutputProfile>${more}</OutputProfiles>`
  );
}

/** Segments of a second, which stay listed for longer than a test takes. */
export const LONG_LLHLS =
  '<ChunkDuration>0.25</ChunkDuration><SegmentDuration>1</SegmentDuration><SegmentCount>100</SegmentCount>';
