import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { matchesEtag } from '../lib/etag.ts';
import { shortDigest } from '../lib/short-digest.ts';
import { acceptsGzip } from '../publishers/hls/http/respond.ts';

const compress = promisify(gzip);
const HERE = new URL('./pages/', import.meta.url);
const MIN_GZIP_BYTES = 512;

const TYPES = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const;

const PAGES = ['api.html', 'console.html', 'index.html', 'not-found.html', 'player.html', 'publish.html'] as const;
export type PageName = (typeof PAGES)[number];
/** Titles of the pages that have only a text, in a common frame. */
const TEXTS: Partial<Record<PageName, string>> = { 'api.html': 'Management API', 'not-found.html': 'Not found' };

/** One file as it is served: its bytes, an ETag of them, and its gzip form, made once when first asked for. */
class Asset {
  readonly type: string;
  readonly etag: string;
  readonly #data: Buffer;
  #gzipped: Promise<Buffer> | undefined;

  constructor(name: string, data: Buffer) {
    this.type = TYPES[name.slice(name.lastIndexOf('.') + 1) as keyof typeof TYPES];
    this.etag = `"${shortDigest(data)}"`;
    this.#data = data;
  }

  /** Answers 304 to a client that has these very bytes of a 200, else the bytes. */
  async send(request: FastifyRequest, reply: FastifyReply, cacheControl: string): Promise<FastifyReply> {
    const vary = [reply.getHeader('vary') ?? [], 'accept-encoding'].flat().join(', ');
    reply.header('etag', this.etag).header('cache-control', cacheControl).header('vary', vary);
    if (reply.statusCode === 200 && matchesEtag(request.headers['if-none-match'], this.etag))
      return reply.code(304).send();
    reply.type(this.type);
    if (this.#data.length < MIN_GZIP_BYTES || !acceptsGzip(request.headers['accept-encoding'])) {
      return reply.send(this.#data);
    }
    this.#gzipped ??= compress(this.#data, { level: 9 });
    return reply.header('content-encoding', 'gzip').send(await this.#gzipped);
  }
}

/** The page that is served deepest below the root, and all that are deeper, name their files by absolute paths. */
const MAX_DEPTH = 8;

/**
 * One page. A proxy may have the server below a path of its own, which only the browser knows: what the page names, `{root}` in front, it
 * names relatively to the path that it was asked for by.
 */
class Page {
  readonly #html: string;
  readonly #forms = new Map<string, Asset>();

  constructor(html: string) {
    this.#html = html;
  }

  /** As that of `Asset`. */
  send(request: FastifyRequest, reply: FastifyReply, cacheControl: string): Promise<FastifyReply> {
    const root = rootFrom(request.url);
    let form = this.#forms.get(root);
    if (form === undefined)
      this.#forms.set(root, (form = new Asset('.html', Buffer.from(this.#html.replaceAll('{root}', root)))));
    return form.send(request, reply, cacheControl);
  }
}

/** Relative path from a page to the root of the server. @param url path and query of a request */
function rootFrom(url: string): string {
  const [path = ''] = url.split('?', 1);
  const depth = path.split('/').length - 2;
  if (depth < 0 || depth > MAX_DEPTH) return '/';
  return depth === 0 ? './' : '../'.repeat(depth);
}

/** The pages and the files they load, read once. `build` changes with any of the files. */
export interface Assets {
  readonly build: string;
  readonly files: ReadonlyMap<string, Asset>;
  readonly pages: Readonly<Record<PageName, Page>>;
}

/**
 * Reads the pages, their files, and the libraries that they load from their npm packages, once for all ports. Of hls.js it is
 * the full build, for the light one knows no audio renditions, and a playlist of Kiln keeps audio apart from video.
 * Pages name their files below a path with `build` in it, so that browsers may keep them for ever.
 */
export function loadAssets(): Promise<Assets> {
  return (loading ??= readAssets());
}

let loading: Promise<Assets> | undefined;

async function readAssets(): Promise<Assets> {
  const contents = new Map<string, Buffer>([
    ['hls.js', await readFile(new URL(import.meta.resolve('hls.js/dist/hls.min.mjs')))],
    ['qrcode-generator.js', await readFile(new URL(import.meta.resolve('qrcode-generator')))],
  ]);
  const names = await readdir(HERE, { recursive: true });
  for (const name of names.filter(isLoaded).sort()) contents.set(name, await readFile(new URL(name, HERE)));
  const build = shortDigest(Buffer.concat([...contents.values()]));
  const files = new Map([...contents].map(([name, data]) => [name, new Asset(name, data)]));
  const frame = await readFile(new URL('frame.html', HERE), 'utf8');
  const page = async (name: PageName): Promise<[PageName, Page]> => {
    const content = await readFile(new URL(name, HERE), 'utf8');
    const title = TEXTS[name];
    const html = title === undefined ? content : frame.replace('{title}', title).replace('{content}', content);
    return [name, new Page(html.replaceAll('{assets}', `{root}-/assets/${build}`))];
  };
  const pages = Object.fromEntries(await Promise.all(PAGES.map(page))) as Record<PageName, Page>;
  return { build, files, pages };
}

/** Whether pages load a file, as opposed to being one. */
function isLoaded(name: string): boolean {
  const type = extname(name).slice(1);
  return type in TYPES && type !== 'html';
}
