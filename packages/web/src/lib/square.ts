/** The server scales pictures of accounts and groups to this size. */
const SIDE_PIXELS = 512;
const QUALITY = 0.92;

/**
 * The centre of a picture as a square. A file that this browser cannot show is returned as it is: the
 * server says what is wrong with it.
 */
export async function squareOf(file: File): Promise<File> {
  try {
    const image = await createImageBitmap(file);
    const { width, height } = image;
    const side = Math.min(width, height);
    const pixels = Math.min(SIDE_PIXELS, side);
    const canvas = new OffscreenCanvas(pixels, pixels);
    const drawing = canvas.getContext("2d");
    if (!drawing) return file;
    drawing.imageSmoothingQuality = "high";
    const [left, top] = [(width - side) / 2, (height - side) / 2];
    drawing.drawImage(image, left, top, side, side, 0, 0, pixels, pixels);
    image.close();
    const blob = await canvas.convertToBlob({ type: "image/webp", quality: QUALITY });
    return new File([blob], file.name, { type: blob.type });
  } catch {
    // Damaged, or of a format that this browser does not know.
    return file;
  }
}
