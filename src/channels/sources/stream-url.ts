/** Parts of `stream://vhost/application/stream`, which names an output stream. */
export interface StreamUrl {
  readonly vhost: string;
  readonly app: string;
  readonly stream: string;
}

/** Excludes lone surrogates, which keys cannot have. */
const FORM = /^stream:\/\/([^/?#\p{Cs}]+)\/([^/?#\p{Cs}]+)\/([^/?#\p{Cs}]+)$/iu;

/** Names of virtual hosts may contain what hosts in a URL may not. @returns undefined for other forms */
export function readStreamUrl(url: string): StreamUrl | undefined {
  const [, vhost, app, stream] = FORM.exec(url) ?? [];
  return vhost === undefined || app === undefined || stream === undefined ? undefined : { vhost, app, stream };
}
