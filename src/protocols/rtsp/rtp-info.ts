/** Beginning of a track as the server gives it (RFC 2326 section 12.33). */
export interface TrackStart {
  readonly url: string;
  /** RTP time of the instant where all tracks begin; undefined when it is not given. */
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
 * Starts of tracks in the order of `urls`: matched by URL, which servers write whole or in part, else by place.
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
