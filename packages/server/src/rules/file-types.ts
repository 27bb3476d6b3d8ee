const TEXT_TYPE = /^text\/|^application\/(.+\+)?(json|xml)$|^image\/svg\+xml$/;

/** Whether a file of this media type can be read as text. */
export const isTextType = (type: string) => TEXT_TYPE.test(type);
