import type { FastifyInstance } from 'fastify';
import type { HlsForm } from '../package/hls-form.ts';
import type { Exchange } from '../answer/exchange.ts';
import { answering } from './answering.ts';
import { serveChild } from './children.ts';
import { applicationOf, type Directory } from './directory.ts';
import { isTs } from './kind-constraint.ts';

/**
 * `/app/stream/token/file` in characters that need no decoding, and the query. Names of other characters, and everything else that is
 * unusual, are the router's.
 */
const CHILD = /^\/([\w.~-]+)\/([\w.~-]+)\/([\w-]+)\/([\w.~-]+\.(?:m3u8|m4s|ts|vtt))(?:\?([^#]*))?$/;
/** Characters; a shorter path has no element that the router finds too long. */
const MAX_PATH = 1024;
/** Characters of a URL: reports of players make queries long. */
const MAX_URL = 8192;

type Interceptor = NonNullable<FastifyInstance['interceptors']>[number];

/**
 * Answers requests for media playlists and media as the routes do, and returns whether it did: most of what viewers ask for needs
 * nothing of the framework, which costs as much as the answer.
 */
export function directChildren(form: HlsForm, directory: Directory, log: Exchange['log']): Interceptor {
  return (request, response, { hostname, headers }) => {
    const { method, url = '' } = request;
    if (method !== 'GET' || isTooLong(url) || isTs(url) !== form.inTs) return false;
    const match = CHILD.exec(url);
    if (match === null) return false;
    const [, app = '', stream = '', token = '', file = '', query = ''] = match;
    if (!form.isChild(file)) return false;
    const params = { app, stream, token, file };
    const exchange = { request, response, hostname, headers: { ...headers }, log };
    answering(form, directory, params, exchange, () => {
      const application = applicationOf(form, directory, params, hostname);
      if (application !== undefined) directory.crossDomains.apply(application, exchange);
      return serveChild(form, directory, application, params, query, exchange);
    });
    return true;
  };
}

function isTooLong(url: string): boolean {
  if (url.length <= MAX_PATH) return false;
  const mark = url.indexOf('?');
  return url.length > MAX_URL || mark < 0 || mark > MAX_PATH;
}
