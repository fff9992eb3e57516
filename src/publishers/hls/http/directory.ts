import type { Access } from '../../../access/access.ts';
import type { Redirects } from '../../../access/redirects.ts';
import type { Application } from '../../../core/application.ts';
import type { Registry } from '../../../core/registry.ts';
import type { QualityReports } from '../../../quality/quality-reports.ts';
import type { PlaylistCounts } from '../answer/counts.ts';
import type { PlayedStream } from '../answer/played-stream.ts';
import type { SessionTokens } from '../answer/token.ts';
import type { HlsForm } from '../package/hls-form.ts';
import type { Pathways } from '../steering/pathways.ts';
import type { CrossDomainRules } from './cors.ts';
import type { Redirected } from './redirected.ts';

/** Services that answer requests for one kind of HLS. */
export interface Directory {
  readonly registry: Registry;
  readonly access: Access;
  /**
   * Finds a stream on this node or another one.
   * @param query of a new viewer, for which the stream may be fetched from an origin
   */
  stream(
    application: Application,
    name: string,
    query: URLSearchParams | undefined,
  ): PlayedStream | undefined | Promise<PlayedStream | undefined>;
  /** Id of the node that has a stream, where that is known. */
  owner(application: Application, name: string): string | undefined;
  tokens(application: Application, name: string): SessionTokens;
  readonly redirected: Redirected;
  readonly redirects: Redirects;
  readonly pathways: Pathways;
  readonly crossDomains: CrossDomainRules;
  readonly counts: PlaylistCounts;
  readonly quality: QualityReports;
}

/** Elements of the path of a request. */
export interface Params {
  readonly app: string;
  readonly stream: string;
  readonly file: string;
  /** Session token of the player; requests for master playlists have none. */
  readonly token?: string;
}

/** Finds the application that a request is for; undefined if it has no such kind of HLS. */
export function applicationOf(
  form: HlsForm,
  { registry, redirected }: Directory,
  { app, stream, token }: Params,
  hostname: string,
): Application | undefined {
  const sentTo = token === undefined ? undefined : redirected.find(app, stream, token);
  const application = sentTo ?? registry.resolve(hostname)?.applications.get(app);
  return application === undefined || form.config(application) === undefined ? undefined : application;
}

/** Runs `go` now, or when the promise resolves. */
export function after<T>(value: T | Promise<T>, go: (value: T) => Promise<void> | void): Promise<void> | void {
  return value instanceof Promise ? value.then(go) : go(value);
}

/** Query of a URL, without `?`. */
export function queryOf(url: string): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at + 1);
}
