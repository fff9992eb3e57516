import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Static } from 'typebox';
import { evaluate } from '../config/arithmetic.ts';
import { OverlayMap, type OverlayConfig } from '../config/elements/overlay-map.ts';
import { elementPath } from '../config/names.ts';
import { readConfig } from '../config/read.ts';
import { readSmallFile } from '../config/small-file.ts';
import { XmlToJson } from '../config/xml-json.ts';
import { parseXml } from '../config/xml.ts';
import { wildcard } from '../lib/wildcard.ts';
import type { Logger } from '../log/log.ts';
import type { OverlayImage } from './encoding.ts';
import { fetchImage, imageHead, MAX_BYTES, type ImageHead } from './overlay-image.ts';

/** Images for some tracks of some output streams. */
interface Rule {
  readonly outputs: RegExp;
  readonly variants: readonly RegExp[];
  readonly overlays: readonly OverlayConfig[];
}

/** An image as a file of Kiln's own, so that changes of its source do not disturb an encoder. */
interface Copy extends ImageHead {
  readonly file: string;
}

const ROOT = 'OverlayMap';
const MAX_IMAGES = 32;
const MAX_SIDE = 8192;

/**
 * Images to draw on the encoded video of one input stream, as they were when it began: a change of the overlay file or of
 * an image applies to later streams.
 */
export class Overlays {
  readonly #rules: readonly Rule[];
  readonly #copies: ReadonlyMap<string, Copy>;
  readonly #folder: string | undefined;
  readonly #log: Logger;

  /**
   * Reads an overlay file and the images that these output streams need. Unreadable or invalid ones are left out and
   * logged.
   * @param path of the overlay file
   */
  static async load(path: string, outputNames: readonly string[], log: Logger): Promise<Overlays> {
    const rules = (await readRules(path, log)).filter(({ outputs }) => outputNames.some((name) => outputs.test(name)));
    const urls = [...new Set(rules.flatMap(({ overlays }) => overlays.map(({ url }) => url)))];
    if (urls.length > MAX_IMAGES)
      log.error({ overlays: path }, `more than ${MAX_IMAGES} images: only the first are drawn`);
    const copies = new Map<string, Copy>();
    if (urls.length === 0) return new Overlays(rules, copies, undefined, log);
    const folder = await workFolder(log);
    if (folder === undefined) return new Overlays(rules, copies, undefined, log);
    await Promise.all(
      urls.slice(0, MAX_IMAGES).map(async (url, index) => {
        try {
          const bytes = await imageBytes(url, path);
          const head = imageHead(bytes);
          const file = join(folder, `${index}.${head.format}`);
          await writeFile(file, bytes, { mode: 0o600 });
          copies.set(url, { ...head, file });
        } catch (error) {
          log.error({ image: url }, `an overlay image is not drawn: ${reasonOf(error as Error)}`);
        }
      }),
    );
    return new Overlays(rules, copies, folder, log);
  }

  private constructor(
    rules: readonly Rule[],
    copies: ReadonlyMap<string, Copy>,
    folder: string | undefined,
    log: Logger,
  ) {
    this.#rules = rules;
    this.#copies = copies;
    this.#folder = folder;
    this.#log = log;
  }

  /** Images for a video track, in drawing order. @param frame size of the encoded frames */
  of(
    outputName: string,
    variantName: string,
    frame: { readonly width: number; readonly height: number },
  ): OverlayImage[] {
    return this.#rules
      .filter(
        ({ outputs, variants }) => outputs.test(outputName) && variants.some((variant) => variant.test(variantName)),
      )
      .flatMap(({ overlays }) => overlays)
      .flatMap((overlay) => {
        const copy = this.#copies.get(overlay.url);
        return copy === undefined ? [] : [placed(overlay, copy, frame)];
      })
      .slice(0, MAX_IMAGES);
  }

  /** Removes the images. Idempotent. */
  close(): void {
    if (this.#folder === undefined) return;
    rm(this.#folder, { recursive: true, force: true }).catch((err: unknown) => {
      this.#log.warn({ err }, 'temporary overlay images could not be removed');
    });
  }
}

/** Creates a folder; undefined if it cannot: a stream without overlays is better than no stream. */
async function workFolder(log: Logger): Promise<string | undefined> {
  try {
    return await mkdtemp(join(tmpdir(), 'kiln-overlays-'));
  } catch (error) {
    log.error(`no overlays are drawn: ${(error as Error).message}`);
    return undefined;
  }
}

async function readRules(path: string, log: Logger): Promise<Rule[]> {
  try {
    return rulesOf((await readSmallFile(path, MAX_BYTES)).toString(), path, log);
  } catch (error) {
    log.error({ overlays: path }, `no overlays are drawn: ${(error as Error).message}`);
    return [];
  }
}

/** @throws Error if the text is no overlay map */
function rulesOf(text: string, path: string, log: Logger): Rule[] {
  const root = parseXml(text, path);
  if (root.name !== ROOT) throw new Error(`the root element must be ${ROOT}`);
  const mapper = new XmlToJson();
  const json = mapper.map(OverlayMap, root, ROOT);
  const reading = readConfig(OverlayMap, json);
  const [twice] = mapper.problems;
  if (twice !== undefined) throw new Error(`${twice.path}: ${twice.message}`);
  const ignored = mapper.warnings.map((finding) => `${finding.path}: ${finding.message}`);
  if (ignored.length > 0) log.warn({ overlays: path, ignored }, 'the overlay file has elements without effect');
  if (reading.ok) return reading.config.overlayInfo.filter(({ enable }) => enable).map(ruleOf);
  const [problem] = reading.problems;
  throw new Error(`${elementPath(ROOT, OverlayMap, problem?.path ?? [])}: ${problem?.message}`);
}

function ruleOf({
  outputStreamName,
  variantNames = '*',
  overlay,
}: Static<typeof OverlayMap>['overlayInfo'][number]): Rule {
  return {
    outputs: wildcard(outputStreamName),
    variants: variantNames.split(',').map((name) => wildcard(name.trim())),
    overlays: overlay,
  };
}

function imageBytes(url: string, overlayFile: string): Promise<Buffer> {
  if (/^https?:/i.test(url)) return fetchImage(url);
  return readSmallFile(/^file:/i.test(url) ? fileURLToPath(url) : resolve(dirname(overlayFile), url), MAX_BYTES);
}

function placed(
  overlay: OverlayConfig,
  copy: Copy,
  frame: { readonly width: number; readonly height: number },
): OverlayImage {
  const value = (text: string | undefined): number => {
    const pixels = evaluate(text ?? '0', { MAIN_W: frame.width, MAIN_H: frame.height }) ?? 0;
    return Math.max(-MAX_SIDE, Math.min(MAX_SIDE, Math.round(pixels)));
  };
  const [width, height] = [value(overlay.width), value(overlay.height)];
  const aspect = copy.width / copy.height;
  return {
    file: copy.file,
    format: copy.format,
    left: value(overlay.left),
    top: value(overlay.top),
    width: side(width, height > 0 ? height * aspect : copy.width),
    height: side(height, width > 0 ? width / aspect : copy.height),
    opacity: overlay.opacity,
  };
}

function side(configured: number, own: number): number {
  return configured > 0 ? configured : Math.max(1, Math.min(MAX_SIDE, Math.round(own)));
}

/** The cause of a failed fetch says more than the error itself. */
function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? cause.message : message;
}
