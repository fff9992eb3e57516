/** What a server says of the beginning of a track (RFC 2326 section 12.33). */
export interface TrackStart {
  readonly url: string;
  /** RTP time of the instant that all tracks begin with; undefined when it is not told. */
  readonly rtpTime: number | undefined;
}

export function parseRtpInfo(field: string): TrackStart[] {
  return field.split(/,\s*(?=url=)/i).flatMap((part) => {
    const url = /^\s*url="?([^;"]+)/i.exec(part)?.[1];
    const rtpTime = Number(/;\s*rtptime=(\d{1,10})\s*(?:;|$)/i.exec(part)?.[1] ?? NaN);
    return url === undefined ? [] : [{ url: url.trim(), rtpTime: rtpTime < 2 ** 32 ? rtpTime : undefined }];
  });
}

/**
 * The starts of tracks, in the order of those: by URL, which servers write whole or in part, else by place.
 * @param urls of the tracks
 */
export function startsOf(urls: readonly string[], starts: readonly TrackStart[]): (number | undefined)[] {
  return urls.map((url, index) => {
    const named =
      starts.find((start) => start.url === url) ??
      starts.find((start) => url.endsWith(`/${start.url.replace(/^.*\//, '')}`));
    return (named ?? (starts.length === urls.length ? starts[index] : undefined))?.rtpTime;
  });
}
